//go:build race

package trx_test

const raceEnabled = true
