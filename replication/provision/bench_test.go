package provision

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

var (
	benchMB     = flag.Int("provision.mb", 16, "megabytes of rows that the benchmark provisions")
	benchTables = flag.Int("provision.tables", 4, "tables they are in")
	benchDir    = flag.String("provision.dir", "", "where, instead of a temporary directory")
)

// words are what the rows of the benchmark are made of.
var words = [...]string{"ship", "oar", "bow", "stern", "harbour", "captain", "trireme", "Athens", "Salamis", "wind", "sail", "rope"}

func benchRow(rng *rand.Rand, id int64) []types.Value {
	var text []byte
	for len(text) < 150 {
		text = append(append(text, words[rng.IntN(len(words))]...), ' ')
	}
	return []types.Value{types.NewInt(id), types.NewString(fmt.Sprintf("%x-%s", rng.Uint64(), text)[:80]), types.NewInt(int64(rng.IntN(100000))),
		types.NewString(string(text))}
}

// BenchmarkProvision provisions tables of rows of about 250 bytes with two secondary
// indexes, from one directory to another through memory.
func BenchmarkProvision(b *testing.B) {
	dir := *benchDir
	if dir == "" {
		dir = b.TempDir()
	}
	e := env.Real()
	o := engineOptions()
	o.BufferPoolSize, o.RedoCapacity = 256<<20, 512<<20
	d := &donor{t: b, eng: openEngineWith(b, e, file.OS(dir+"/donor"), o)}
	d.serve(e, func(o *SourceOptions) { o.PartSize = 0 })
	defer d.close()
	createSchema(b, d.eng, "db")
	raw := int64(0)
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range *benchTables {
		def := plainTable("db", fmt.Sprint("t", n))
		def.Columns = append(def.Columns, col("text", types.Type{Kind: types.KindVarChar, Length: 200, Collation: utf8ai}))
		create(b, d.eng, def)
		with(b, d.eng, "db", def.Name, func(tbl *table.Table) {
			l := d.eng.Tables.NewWorker().NewLoader(tbl, table.LoadOptions{FS: file.OS(dir), Memory: 64 << 20})
			var row []byte
			for id, size := int64(0), int64(0); size < int64(*benchMB)<<20/int64(*benchTables); id++ {
				values := benchRow(rng, id)
				if err := l.Add(values); err != nil {
					b.Fatal(err)
				}
				row, _ = table.AppendExported(row[:0], tbl.Schema, values)
				size += int64(len(row))
				raw += int64(len(row))
			}
			if err := l.Finish(); err != nil {
				b.Fatal(err)
			}
		})
	}
	for b.Loop() {
		b.StopTimer()
		_ = os.RemoveAll(dir + "/receiver")
		home := openHome(b, file.OS(dir+"/receiver"))
		opt := receiverOptions(e, home, d.net)
		opt.Storage, opt.SortMemory = o, 0
		b.StartTimer()
		start := time.Now()
		if _, err := receive(opt); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(raw)/(1<<20)/time.Since(start).Seconds(), "MB/s")
	}
	s := d.src.Stats()
	b.ReportMetric(float64(s.RawBytes)/float64(s.SentBytes), "ratio")
}
