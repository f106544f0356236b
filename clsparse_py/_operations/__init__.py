"""Operations on sparse arrays: products, transposition, element by element, indexing, reductions."""
