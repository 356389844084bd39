// Package reportfile writes what benchmarks have measured; bench/report has what they wrote last.
package reportfile

import (
	"os"
	"path/filepath"
)

// Write writes a report, or a picture of one, and makes its directory.
func Write(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}
