"""Operations that apply to each entry of a matrix, or of two."""
