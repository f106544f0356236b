"""Used by all other rooms: errors, files, the cache on disk, records, tables, names that load late."""
