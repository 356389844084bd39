package table_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestIsolation runs testdata/isolation/*.txt, scripts as [TestScripts] has them:
// the anomalies of Adya's thesis in the form of Kleppmann's Hermitage suite, each
// at all four levels, with the results that InnoDB gives.
func TestIsolation(t *testing.T) {
	datadriven.Walk(t, "testdata/isolation", runScript)
}
