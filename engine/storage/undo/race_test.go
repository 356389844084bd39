//go:build race

package undo_test

const raceEnabled = true
