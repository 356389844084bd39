package provision

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"
)

// chunked gives bytes in chunks of random lengths.
type chunked struct {
	b   []byte
	rng *rand.Rand
	max int
}

func (c *chunked) Next() ([]byte, error) {
	if len(c.b) == 0 {
		return nil, io.EOF
	}
	n := min(len(c.b), 1+c.rng.IntN(c.max))
	chunk := bytes.Clone(c.b[:n])
	c.b = c.b[n:]
	return chunk, nil
}

func (c *chunked) Close() error { return nil }

// TestFrames: frames arrive as they were sent, however they are cut, and any change of
// a byte is noticed.
func TestFrames(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var out sink
	f := frameWriter{w: &out}
	var bodies [][]byte
	for i := range 40 {
		body := make([]byte, rng.IntN(3000))
		if i == 20 {
			body = make([]byte, 2*MaxChunk+5)
		}
		for k := range body {
			body[k] = byte(rng.Uint32())
		}
		bodies = append(bodies, body)
		if err := f.send(framePart, append(f.begin(), body...)); err != nil {
			t.Fatal(err)
		}
	}
	if f.sent != int64(len(out)) {
		t.Errorf("sent %d of %d", f.sent, len(out))
	}
	for _, size := range []int{1, 7, 1000, MaxChunk} {
		in := frameReader{r: &chunked{out, rng, size}}
		for i, want := range bodies {
			if ty, body, err := in.next(); ty != framePart || !bytes.Equal(body, want) || err != nil {
				t.Fatalf("chunks of %d, frame %d: %v, %d bytes, %v", size, i, ty, len(body), err)
			}
		}
		if _, _, err := in.next(); !errors.Is(err, errCut) {
			t.Errorf("at the end: %v", err)
		}
	}
	short := out[:2*frameHeader+len(bodies[0])+len(bodies[1])]
	for i := range short {
		bad := bytes.Clone(short)
		bad[i] ^= 1 << rng.IntN(8)
		in := frameReader{r: &chunked{bad, rng, 500}}
		_, _, err := in.next()
		if err == nil {
			_, _, err = in.next()
		}
		if !errors.Is(err, errDamaged) && !errors.Is(err, errCut) {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	if err := f.send(frameEnd, append(f.begin(), make([]byte, 1<<17)...)); err == nil {
		t.Error("a frame that is too long was sent")
	}
}

func TestMessages(t *testing.T) {
	q := request{min: 1, max: 3, group: testGroup, receiver: 1 << 60, csn: 9, what: askTable, table: 77, resume: true, after: []byte("key")}
	if got, err := decodeRequest(q.append(nil)); err != nil || !reflect.DeepEqual(got, q) {
		t.Errorf("%+v, %v", got, err)
	}
	d := &decoder{b: someManifest.append(nil)}
	if m := d.manifest(); d.end() != nil || !reflect.DeepEqual(m, someManifest) {
		t.Errorf("%+v", m)
	}
	p := part{rows: 3, raw: 100, codec: zstdFrame, rowsSoFar: 9, bytesSoFar: 1 << 40, sumSoFar: 1 << 63, last: []byte("k"), data: []byte("data")}
	d = &decoder{b: p.append(nil)}
	if got := d.part(); d.end() != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("%+v", got)
	}
	for _, kind := range remoteErrors[1:] {
		d = &decoder{b: remotef(kind, "text").append(nil)}
		if e := d.remoteError(); d.end() != nil || e.Kind != kind || e.Text != "text" {
			t.Errorf("%v", e)
		}
	}
	for w := askSnapshot; w < askEnd; w++ {
		if s := w.String(); s == "" || s[0] == 'r' && w != askRelease {
			t.Errorf("request %d: %q", w, s)
		}
	}
}

func FuzzRequest(f *testing.F) {
	q := request{min: 1, max: 1, group: testGroup, what: askTable, table: 7, after: []byte("k")}
	f.Add(q.append(nil))
	f.Add([]byte(requestMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRequest(b)
		if err == nil {
			if again, err := decodeRequest(r.append(nil)); err != nil || !reflect.DeepEqual(again, r) {
				t.Errorf("%+v and %+v, %v", r, again, err)
			}
		} else if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrVersion) {
			t.Error(err)
		}
	})
}

// FuzzAnswer reads any bytes as an answer.
func FuzzAnswer(f *testing.F) {
	var out sink
	w := frameWriter{w: &out}
	_ = w.send(frameManifest, someManifest.append(w.begin()))
	p := part{rows: 1, raw: 3, last: []byte("k"), data: []byte("abc"), rowsSoFar: 1, bytesSoFar: 3}
	_ = w.send(framePart, p.append(w.begin()))
	_ = w.send(frameError, remotef(ErrBusy, "x").append(w.begin()))
	f.Add([]byte(out), uint64(1))
	dec, err := newDecoder()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		s := &stream{b: &building{r: &Receiver{}}}
		s.in.r = &chunked{b, rand.New(rand.NewPCG(seed, 1)), 50}
		for {
			ty, body, done, err := s.next()
			if done || err != nil {
				break
			}
			if ty == framePart {
				_, _, _ = s.unpack(dec, body, nil)
			}
		}
		_, _, _ = s.unpack(dec, b, nil) // as if the checksum had been right
		for _, read := range []func(d *decoder){
			func(d *decoder) { d.manifest() }, func(d *decoder) { d.remoteError() },
			func(d *decoder) { d.tableEntry() }, func(d *decoder) { d.ending() },
		} {
			d := &decoder{b: b}
			read(d)
			_ = d.end()
		}
	})
}
