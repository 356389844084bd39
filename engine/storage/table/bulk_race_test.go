//go:build race

package table_test

// bulkRows is how many rows the larger tests load.
const bulkRows = 2000
