module paged

go 1.21
