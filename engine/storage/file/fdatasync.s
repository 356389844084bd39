// There has to be a file of assembly where functions have no body in Go: see fdatasync.go.
