// Segments of an array, and the sorted runs in each segment, which are merged in rounds until the segment is one run.
//
// bounds has the first element of each segment, and the end of the last segment.
// With RUNS_GIVEN 1, segment_ptr has the first sorted run of each segment, and run_ptr the first element of each run.
// A segment that is cut is first sorted in tiles of TILE elements: its tiles then are the runs of the segment.
// Segments are cut into tiles if no runs are given, or if merging the given runs takes over SORT_ROUNDS rounds more than tiles.
//
// A segment whose runs take r rounds of merging begins in round n_rounds - r, so that all segments end in the last round.
// A segment of a single sorted run is moved to the output in the last merge round.
#ifndef RUNS_GIVEN
    #error "segment_runs.cl needs RUNS_GIVEN: 1 if runs are given, else 0"
#endif
#ifndef TILE
    #error "segment_runs.cl needs TILE: elements of a tile"
#endif
#ifndef SORT_ROUNDS
    #error "segment_runs.cl needs SORT_ROUNDS: rounds that sorting tiles is worth"
#endif
#if RUNS_GIVEN
    #define RUN_PARAMETERS global const I *segment_ptr, global const I *run_ptr,
    #define RUN_ARRAYS segment_ptr, run_ptr,
#else
    #define RUN_PARAMETERS
    #define RUN_ARRAYS
#endif

typedef struct {
    long begin, end;       // elements
    long first_run, n_runs;
    uint rounds;           // rounds of the merge of the runs
    int cut;               // whether the runs are tiles
} Segment;

// Two sorted runs that a round merges: elements from begin to middle, and from middle to end. The second run may be empty.
typedef struct {
    long begin, middle, end;
} Pair;

uint rounds_of(const long n_runs)
{
    return n_runs > 1 ? (uint)(64 - clz(n_runs - 1)) : 0;
}

// The segment of the elements from begin to end, with n_given sorted runs from first_run on if the caller gives runs.
Segment segment_between(const long begin, const long end, const long first_run, const long n_given)
{
    Segment s = {begin, end, 0, (end - begin + (TILE - 1)) / TILE, 0, 1};
    s.rounds = rounds_of(s.n_runs);
#if RUNS_GIVEN
    if (rounds_of(n_given) <= s.rounds + SORT_ROUNDS) {
        s.first_run = first_run;
        s.n_runs = n_given;
        s.rounds = rounds_of(n_given);
        s.cut = 0;
    }
#endif
    return s;
}

Segment segment_at(RUN_PARAMETERS global const I *bounds, const long number)
{
#if RUNS_GIVEN
    return segment_between(
        bounds[number], bounds[number + 1], segment_ptr[number], (long)segment_ptr[number + 1] - segment_ptr[number]);
#else
    return segment_between(bounds[number], bounds[number + 1], 0, 0);
#endif
}

// The number of merge rounds that a segment has taken part in before a round; negative before the segment's first round.
int step_in(const Segment s, const uint round, const uint n_rounds)
{
    return (int)round - (int)(n_rounds - max(s.rounds, 1u));
}

long run_begin(RUN_PARAMETERS const Segment s, const long run)
{
    const long present = min(run, s.n_runs);
#if RUNS_GIVEN
    if (!s.cut)
        return run_ptr[s.first_run + present];
#endif
    return min(s.begin + present * TILE, s.end);
}

// The last run from `low` up to `high` that begins at or before a position: the run that holds the position, if there is one.
long run_at(RUN_PARAMETERS const Segment s, long low, long high, const long position)
{
    while (low < high) {
        const long middle = low + (high - low + 1) / 2;
        if (run_begin(RUN_ARRAYS s, middle) <= position)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

// The pair of sorted runs, with a given one among them, that a round merges after `step` merge rounds of the segment.
Pair pair_of(RUN_PARAMETERS const Segment s, const long run, const int step)
{
    const long first = run >> (step + 1) << (step + 1);
    Pair p;
    p.begin = run_begin(RUN_ARRAYS s, first);
    p.middle = run_begin(RUN_ARRAYS s, first + ((long)1 << step));
    p.end = run_begin(RUN_ARRAYS s, first + ((long)2 << step));
    return p;
}
