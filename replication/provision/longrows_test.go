package provision

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// fillLong makes db.long, with rows whose two values have these lengths.
func fillLong(t testing.TB, eng *storage.Engine, value func(n int) []byte, lengths ...int) {
	t.Helper()
	createSchema(t, eng, "long")
	def := plainTable("long", "rows")
	for i := range 2 {
		def.Columns[1+i].Type = types.Type{Kind: types.KindLongBlob, Collation: types.CollationBinary}
	}
	def.Indexes = def.Indexes[:1]
	create(t, eng, def)
	fill(t, eng, "long", "rows", len(lengths), func(i int, _ *table.Table) []types.Value {
		return []types.Value{types.NewInt(int64(i)), types.NewBytes(value(lengths[i])), types.NewBytes(value(lengths[i]))}
	})
}

func noise(rng *rand.Rand) func(n int) []byte {
	return func(n int) []byte {
		b := make([]byte, n)
		for k := range b {
			b[k] = byte(rng.Uint32())
		}
		return b
	}
}

// someLong are lengths of rows that are split where a part has 4 KiB, and of others.
var someLong = []int{100, 60 << 10, 20, 30, 8<<10 - 40, 8 << 10, 1000, 200 << 10, 3}

// TestLongRows: no frame is longer than a few parts, whatever is in it.
func TestLongRows(t *testing.T) {
	simRun(t, 1, func(e env.Env, d *donor) {
		fillLong(t, d.eng, noise(rand.New(rand.NewPCG(1, 1))), someLong...)
		sizes := map[*request]int{}
		longest := 0
		d.net.cut = func(q *request, _ int, chunk []byte) ([]byte, error) {
			if sizes[q] <= 0 { // a frame begins: each begins a chunk
				n := frameHeader + int(binary.LittleEndian.Uint32(chunk))
				sizes[q], longest = n, max(longest, n)
			}
			sizes[q] -= len(chunk)
			return chunk, nil
		}
		j := newJob(t, e, d.net)
		j.opt.Verify = true
		j.ends(d)
		if most := longRows*d.src.opt.PartSize + 1024; longest > most {
			t.Errorf("a frame of %d bytes, at most %d were to be", longest, most)
		}
	})
}

// TestLongRowsCut: a stream that ends within a row is gone on with behind the one before.
func TestLongRowsCut(t *testing.T) {
	simRun(t, 1, func(e env.Env, d *donor) {
		fillLong(t, d.eng, noise(rand.New(rand.NewPCG(1, 1))), someLong...)
		rng, cuts := rand.New(rand.NewPCG(2, 2)), 0
		d.net.cut = func(_ *request, n int, chunk []byte) ([]byte, error) {
			if n > 10 && rng.IntN(30) == 0 {
				cuts++
				return nil, errors.New("cut")
			}
			return chunk, nil
		}
		newJob(t, e, d.net).ends(d)
		if cuts < 5 || d.net.resumed() == 0 {
			t.Errorf("%d cuts, resumed %d times", cuts, d.net.resumed())
		}
	})
}

// dumpFiles are files of a dump by their names.
type dumpFiles map[string]*bytes.Buffer

type fileWriter struct{ *bytes.Buffer }

func (f fileWriter) Abort() {}

func (f fileWriter) Send(chunk []byte) error {
	_, err := f.Write(chunk)
	return err
}

func (fs dumpFiles) begin(name string) (ChunkWriter, error) {
	fs[name] = &bytes.Buffer{}
	return fileWriter{fs[name]}, nil
}

func (fs dumpFiles) open(name string) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(fs[name].Bytes())), nil
}

// restore receives from the files.
func (fs dumpFiles) restore(t testing.TB, e env.Env, home *Home) (Manifest, error) {
	t.Helper()
	a, err := OpenArchive(fs.open)
	if err != nil {
		t.Fatal(err)
	}
	opt := patient(receiverOptions(e, home, nil))
	opt.Open, opt.Streams = a.Open, 1
	return receive(opt)
}

// dump takes a dump in a format.
func (d *donor) dump(t testing.TB, format uint32) (dumpFiles, Manifest, error) {
	t.Helper()
	files := dumpFiles{}
	if format == FormatVersion {
		m, err := d.src.Dump(context.Background(), files.begin, nil)
		return files, m, err
	}
	ask := func(q request) error {
		q.min, q.max, q.group, q.receiver = 1, format, testGroup, 7
		w, _ := files.begin(dumpName(q.what, q.table))
		return d.src.Answer(context.Background(), q.append(nil), w)
	}
	if err := ask(request{what: askSnapshot, fresh: true}); err != nil {
		t.Fatal(err)
	}
	m, err := readManifest(bytes.NewReader(files[dumpSnapshot].Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(ask(request{what: askCatalogue, csn: m.CSN}), ask(request{what: askState, csn: m.CSN}))
	if err != nil {
		t.Fatal(err)
	}
	tables, err := readTables(bytes.NewReader(files[dumpCatalogue].Bytes()))
	for _, e := range tables {
		err = errors.Join(err, ask(request{what: askTable, csn: m.CSN, table: e.id}))
	}
	return files, m, err
}

// TestLongRowsDump: a dump holds them, in this format and, up to maxPart, in the one before.
func TestLongRowsDump(t *testing.T) {
	simRun(t, 1, func(e env.Env, d *donor) {
		fillLong(t, d.eng, noise(rand.New(rand.NewPCG(1, 1))), someLong...)
		for format := uint32(minFormat); format <= FormatVersion; format++ {
			files, m, err := d.dump(t, format)
			if err != nil {
				t.Fatal(err)
			}
			if m.Format != format {
				t.Errorf("format %d, %d was asked for", m.Format, format)
			}
			j := newJob(t, e, nil)
			if m, err = files.restore(t, e, j.home); err != nil {
				t.Fatal(err)
			}
			eng := openReceived(t, e, j.home)
			same(t, d.eng, eng, &m)
			if err := eng.Close(); err != nil {
				t.Error(err)
			}
		}
		// An old receiver is told what it cannot get, and to whom that is due.
		v := sender{s: d.src, sn: &snapshot{}, ctx: context.Background(), raw: make([]byte, maxPart+1), format: splitFormat - 1}
		wantError(t, v.part(1, nil), ErrVersion, "a row of 83886081 bytes", "start a newer version there")
	})
}

// TestEndWithinRow: an answer that ends within a row does not pass for one that is whole.
func TestEndWithinRow(t *testing.T) {
	simRun(t, 1, func(e env.Env, d *donor) {
		fillLong(t, d.eng, noise(rand.New(rand.NewPCG(1, 1))), 100<<10)
		files, _, err := d.dump(t, FormatVersion)
		if err != nil {
			t.Fatal(err)
		}
		cut := 0
		for name, f := range files {
			if !strings.HasPrefix(name, dumpTable) {
				continue
			}
			var short sink
			out := frameWriter{w: &short}
			in := frameReader{r: &pieces{Reader: bytes.NewReader(f.Bytes())}}
			var so ending
			for {
				ty, body, err := in.next()
				if err != nil {
					t.Fatal(err)
				}
				dec := &decoder{b: body}
				if ty == framePart {
					p := dec.part()
					if so.rows == 0 && p.rows > 0 && so.bytes > 0 { // the last one of a long row
						cut++
						continue
					}
					so = ending{p.rowsSoFar, p.bytesSoFar, p.sumSoFar}
				} else if ty == frameEnd {
					body = so.append(nil)
				}
				if err := out.send(ty, append(out.begin(), body...)); err != nil {
					t.Fatal(err)
				}
				if ty == frameEnd {
					break
				}
			}
			files[name] = bytes.NewBuffer(short)
		}
		if cut != 1 {
			t.Fatalf("%d tables were cut", cut)
		}
		_, err = files.restore(t, e, newJob(t, e, nil).home)
		wantError(t, err, errDamaged, "ends before the rows")
	})
}

// TestReserve: memory for a row is taken once it is known how long it is, and never for a length alone.
func TestReserve(t *testing.T) {
	row := append(binary.AppendUvarint(nil, 90), make([]byte, 90)...)
	raw := append(bytes.Clone(row), row[:40]...)
	if n := wholeLength(raw); n != 2*len(row) {
		t.Errorf("%d bytes, want %d", n, 2*len(row))
	}
	if n := cap(reserve(raw[:len(raw):len(raw)], 10)); n < 2*len(row) || n > 2*len(row)+3*decodeRoom {
		t.Errorf("room for %d bytes", n)
	}
	for _, wrong := range [][]byte{binary.AppendUvarint(nil, 1<<63), binary.AppendUvarint(nil, 1<<40), bytes.Repeat([]byte{0xff}, 20)} {
		if n := cap(reserve(wrong, 5)); n > 3*len(wrong)+5+2*decodeRoom {
			t.Errorf("room for %d bytes because of %x", n, wrong)
		}
	}
	// Piece by piece it is taken few times.
	const whole, piece = 1 << 20, 1 << 10
	raw = binary.AppendUvarint(nil, whole)
	taken := 0
	for len(raw) < whole {
		before := cap(raw)
		if raw = reserve(raw, piece); cap(raw) != before {
			taken++
		}
		raw = append(raw, make([]byte, piece)...)
	}
	if taken > 12 || cap(raw) > whole+2*piece {
		t.Errorf("taken %d times, %d bytes in the end", taken, cap(raw))
	}
}

// TestRowOf90MB: a row as statements can make it is dumped, restored and given to a member.
func TestRowOf90MB(t *testing.T) {
	e := env.Real()
	opt := engineOptions()
	opt.BufferPoolSize, opt.RedoCapacity = 64<<20, 64<<20
	d := &donor{t: t, eng: openEngineWith(t, e, file.OS(t.TempDir()), opt)}
	d.serve(e, func(o *SourceOptions) { o.PartSize = 0 })
	defer d.close()
	fillLong(t, d.eng, func(n int) []byte { return bytes.Repeat([]byte{'a'}, n) }, 45_000_000)
	files, _, err := d.dump(t, FormatVersion)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, run func(home *Home) (Manifest, error)) {
		home := openHome(t, file.OS(t.TempDir()))
		m, err := run(home)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		eng := openReceived(t, e, home)
		if want, got := rowsHash(t, d.eng), rowsHash(t, eng); got != want || m.CSN == 0 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}
	check("restore", func(home *Home) (Manifest, error) { return files.restore(t, e, home) })
	check("provisioning", func(home *Home) (Manifest, error) {
		return receive(patient(receiverOptions(e, home, d.net)))
	})
}

func rowsHash(t testing.TB, eng *storage.Engine) (sum string) {
	with(t, eng, "long", "rows", func(tbl *table.Table) { sum = hashOf(eng, tbl) })
	return sum
}
