//! Errors of header compression.

/// Why a header block cannot be decoded. The decoder's state is lost, so the connection must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// The block ends within a field.
    #[error("a header block ends within a field")]
    Truncated,
    /// An index beyond both tables.
    #[error("a header block names an index that no table has")]
    Index,
    /// An integer over 2^28.
    #[error("a header block holds an integer that is too large")]
    Integer,
    /// A string that is not valid Huffman code.
    #[error("a header block holds a bad Huffman code")]
    Huffman,
    /// A change of the table's size over the limit, or after a field.
    #[error("a header block changes the size of the table where it may not")]
    SizeUpdate,
    /// The fields are larger than the bound.
    #[error("the header fields are larger than the bound")]
    TooLarge,
}
