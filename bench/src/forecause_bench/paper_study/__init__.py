"""The published transformer at the paper's own size: fits that are kept, and tables from them."""
