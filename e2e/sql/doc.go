// Package sql tests servers as their users meet them: processes of the real binary, real
// drivers and tools, kill -9, pauses. Its tests build the binary once.
package sql
