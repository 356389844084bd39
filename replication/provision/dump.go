package provision

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A dump is a snapshot in files: each holds the answer to one of the requests that a
// receiver would send, from its first frame to its last.
const (
	dumpSnapshot  = "snapshot"
	dumpCatalogue = "catalogue"
	dumpState     = "state"
	dumpTable     = "table."
)

// dumpName is the name of the file with the answer to a request; "" if there is none.
func dumpName(w what, table uint64) string {
	switch w {
	case askSnapshot:
		return dumpSnapshot
	case askCatalogue:
		return dumpCatalogue
	case askState:
		return dumpState
	case askTable:
		return dumpTable + strconv.FormatUint(table, 10)
	}
	return ""
}

// IsDumpName reports whether a file of a dump may have this name.
func IsDumpName(name string) bool {
	digits, table := strings.CutPrefix(name, dumpTable)
	n, err := strconv.ParseUint(digits, 10, 64)
	return name == dumpSnapshot || name == dumpCatalogue || name == dumpState || table && err == nil && dumpTable+strconv.FormatUint(n, 10) == name
}

// Dump takes a snapshot and writes it to files, one after the other: what begin returns
// takes a file's chunks until begin is called again. behind, if not nil, is called when all
// are written, while the snapshot still keeps the log behind it from being purged.
//
// Errors: those of begin, behind and the chunks' writer; *[RemoteError] of the source.
func (s *Source) Dump(ctx context.Context, begin func(name string) (ChunkWriter, error), behind func(*Manifest) error) (m Manifest, err error) {
	s.mu.Lock()
	s.dumps++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.dumps--
		s.mu.Unlock()
	}()
	d := &dump{s: s, ctx: ctx, begin: begin, token: s.opt.Env.Uint64()}
	head, err := d.small(request{what: askSnapshot, fresh: true})
	if err != nil {
		return m, err
	}
	defer func() { _ = s.Answer(ctx, d.encode(request{what: askRelease, csn: m.CSN}), discard{}) }()
	if m, err = readManifest(bytes.NewReader(head)); err != nil {
		return m, err
	}
	if err := s.retain(d.token); err != nil {
		return m, err
	}
	list, err := d.small(request{what: askCatalogue, csn: m.CSN})
	if err != nil {
		return m, err
	}
	tables, err := readTables(bytes.NewReader(list))
	if err != nil {
		return m, err
	}
	if err := d.file(request{what: askState, csn: m.CSN}, nil); err != nil {
		return m, err
	}
	for _, t := range tables {
		if err := d.file(request{what: askTable, csn: m.CSN, table: t.id}, nil); err != nil {
			return m, err
		}
	}
	if behind != nil {
		err = behind(&m)
	}
	if err != nil { // for want of the log, if that was removed
		s.mu.Lock()
		err = cmp.Or(s.lost(m.CSN), err)
		s.mu.Unlock()
	}
	return m, err
}

// retain has a snapshot stay until a receiver of it releases it, however long nothing is read.
func (s *Source) retain(receiver uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.snapshots, func(sn *snapshot) bool { return sn.users[receiver] })
	if i < 0 {
		return remotef(ErrSnapshotGone, "the snapshot was closed before it was read")
	}
	s.snapshots[i].retained = receiver
	return nil
}

// dump is a dump that is being made.
type dump struct {
	s     *Source
	ctx   context.Context
	begin func(name string) (ChunkWriter, error)
	token uint64
}

func (d *dump) encode(q request) []byte {
	q.min, q.max, q.group, q.receiver = minFormat, FormatVersion, d.s.opt.Group, d.token
	return q.append(nil)
}

// file writes the answer to a request, and to copied too.
func (d *dump) file(q request, copied *bytes.Buffer) error {
	w, err := d.begin(dumpName(q.what, q.table))
	if err != nil {
		return err
	}
	if copied != nil {
		w = tee{w, copied}
	}
	return d.s.Answer(d.ctx, d.encode(q), w)
}

// small is file for an answer that is needed here, too.
func (d *dump) small(q request) ([]byte, error) {
	var b bytes.Buffer
	err := d.file(q, &b)
	return b.Bytes(), err
}

type tee struct {
	ChunkWriter
	copied *bytes.Buffer
}

func (t tee) Send(chunk []byte) error {
	_, _ = t.copied.Write(chunk)
	return t.ChunkWriter.Send(chunk)
}

type discard struct{}

func (discard) Send([]byte) error { return nil }

func (discard) Abort() {}

// eachFrame calls fn with the frames of an answer but the last, which has to be its end.
func eachFrame(r io.Reader, fn func(t frameType, d *decoder)) error {
	in := frameReader{r: &pieces{Reader: r}}
	for {
		t, body, err := in.next()
		if err != nil {
			return err
		}
		d := &decoder{b: body}
		switch t {
		case frameEnd:
			d.ending()
			return d.end()
		case frameError:
			e := d.remoteError()
			if err := d.end(); err != nil {
				return err
			}
			return e
		}
		fn(t, d)
		if err := d.end(); err != nil {
			return err
		}
	}
}

// readManifest reads the file of a dump that says what it is.
func readManifest(r io.Reader) (m Manifest, err error) {
	got := false
	err = eachFrame(r, func(t frameType, d *decoder) {
		if m, got = d.manifest(), true; t != frameManifest {
			d.fail()
		}
	})
	if err == nil && !got {
		err = fmt.Errorf("%w: there is no manifest", errDamaged)
	}
	return m, err
}

// readTables reads the list of tables.
func readTables(r io.Reader) (tables []tableEntry, err error) {
	err = eachFrame(r, func(t frameType, d *decoder) {
		switch t {
		case frameTable:
			tables = append(tables, d.tableEntry())
		case frameSchema:
			d.rest()
		default:
			d.fail()
		}
	})
	return tables, err
}

// pieces gives what a reader has in chunks.
type pieces struct {
	io.Reader
	buf  []byte
	done func() error // nil: nothing is to be closed
}

func (p *pieces) Next() ([]byte, error) {
	if p.buf == nil {
		p.buf = make([]byte, 256<<10)
	}
	n, err := io.ReadFull(p.Reader, p.buf)
	if n > 0 && (err == nil || errors.Is(err, io.ErrUnexpectedEOF)) {
		return p.buf[:n], nil
	}
	return nil, err
}

func (p *pieces) Close() error {
	if p.done == nil {
		return nil
	}
	return p.done()
}

// Archive answers a receiver's requests from the files of a dump.
type Archive struct {
	open     func(name string) (io.ReadCloser, error)
	manifest Manifest
}

// OpenArchive reads what the dump is; open opens one of its files.
func OpenArchive(open func(name string) (io.ReadCloser, error)) (*Archive, error) {
	f, err := open(dumpSnapshot)
	if err != nil {
		return nil, err
	}
	m, err := readManifest(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("the file %s: %w", dumpSnapshot, err)
	}
	return &Archive{open: open, manifest: m}, nil
}

// Manifest says which snapshot it is.
func (a *Archive) Manifest() Manifest { return a.manifest }

// Open is for [ReceiverOptions].Open. Each file is read once, from its beginning: a
// receiver that asks for the rest of one is told that it is not to be had.
func (a *Archive) Open(_ context.Context, _ Want, req []byte) (ChunkReader, error) {
	r, err := decodeRequest(req)
	if err != nil {
		return nil, err
	}
	name := dumpName(r.what, r.table)
	switch {
	case name == "": // a release
		return answer(func(f *frameWriter) { _ = f.send(frameEnd, (&ending{}).append(f.begin())) }), nil
	case r.resume:
		return answer(func(f *frameWriter) {
			_ = tell(f, remotef(ErrRequest, "the file %s could not be read to its end: it is damaged, or the disk is full", name))
		}), nil
	}
	in, err := a.open(name)
	if err != nil {
		return answer(func(f *frameWriter) { _ = tell(f, remotef(ErrRequest, "the file %s: %v", name, err)) }), nil
	}
	return &pieces{Reader: in, done: in.Close}, nil
}

// answer is an answer that is written here.
func answer(write func(*frameWriter)) ChunkReader {
	var b bytes.Buffer
	write(&frameWriter{w: tee{discard{}, &b}})
	return &pieces{Reader: &b}
}
