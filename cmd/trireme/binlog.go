package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/binlog/log"
)

func runBinlog(args []string) error {
	f := flags("binlog [options] list|print|export|verify [file ...]",
		"Looks into a node's log. The node may run: its newest file is copied first.\n\n"+
			"  list    the files, with what is in them\n"+
			"  print   transactions and events, as text\n"+
			"  export  standard binlog files, which MySQL's tools read, into the directory -out\n"+
			"  verify  read everything and check it\n\n"+
			"Files are named as binlog.000001 or by number; none means all. The last entries of the newest\n"+
			"file may not be committed.")
	datadir := f.String("datadir", "data", "the node's `directory`")
	out := f.String("out", ".", "`directory` for export")
	from := f.Uint64("from", 0, "first transaction to print or export, by its GTID `number`")
	to := f.Uint64("to", 0, "last transaction; 0: all")
	if err := parse(f, args); err != nil {
		return err
	}
	if f.NArg() == 0 {
		return misuse(f, "what to do is missing")
	}
	do := map[string]func(*binlogView) error{
		"list": (*binlogView).list, "print": (*binlogView).print, "verify": (*binlogView).verify,
		"export": func(v *binlogView) error { return v.export(*out) },
	}[f.Arg(0)]
	if do == nil {
		return misuse(f, "there is no %q", f.Arg(0))
	}
	wanted := make(map[uint64]bool)
	for _, name := range f.Args()[1:] {
		n, ok := log.FileNumber(filepath.Base(name))
		if !ok {
			var err error
			if n, err = strconv.ParseUint(name, 10, 64); err != nil {
				return misuse(f, "%q is no file of a log", name)
			}
		}
		wanted[n] = true
	}
	v := &binlogView{wanted: wanted, from: *from, to: *to, w: bufio.NewWriter(os.Stdout)}
	l, group, done, err := openLog(*datadir)
	if err != nil {
		return err
	}
	v.log, v.group = l, group
	err = do(v)
	err = errors.Join(err, v.w.Flush(), l.Close(), done())
	if errors.Is(err, syscall.EPIPE) {
		return errFailed // whoever reads has seen enough, and knows
	}
	return err
}

// binlogView is a log and what is wanted of it.
type binlogView struct {
	log      *log.Log
	group    [16]byte
	wanted   map[uint64]bool
	from, to uint64
	w        *bufio.Writer
}

// files are those that are wanted.
func (v *binlogView) files() (list []log.FileInfo, err error) {
	for _, f := range v.log.Files() {
		if len(v.wanted) == 0 || v.wanted[f.Number] {
			list = append(list, f)
		}
	}
	if len(list) < len(v.wanted) {
		return nil, errors.New("not all of these files are in the log")
	}
	return list, nil
}

func (v *binlogView) list() error {
	files, err := v.files()
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(v.w, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "FILE\tFORMAT\tBYTES\tENTRIES\tTRANSACTIONS")
	span := func(first, last uint64) string {
		if last < first {
			return "-"
		}
		return fmt.Sprintf("%d-%d", first, last)
	}
	for _, f := range files {
		_, _ = fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\n", f.Name, f.Version, f.Size, span(f.FirstIndex, f.LastIndex), span(f.FirstNumber, f.LastNumber))
	}
	return t.Flush()
}

func (v *binlogView) verify() error {
	files, err := v.files()
	if err != nil {
		return err
	}
	bad := 0
	for _, f := range files {
		if err := v.log.VerifyFile(f.Number); err != nil {
			bad++
			_, _ = fmt.Fprintf(v.w, "%s  %v\n", f.Name, err)
			continue
		}
		_, _ = fmt.Fprintf(v.w, "%s  good, %d entries\n", f.Name, f.LastIndex+1-f.FirstIndex)
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d files are damaged", bad, len(files))
	}
	return nil
}

// each calls fn with every transaction of a file that is wanted, and note with every
// other entry.
func (v *binlogView) each(f *log.FileInfo, note func(e *log.Entry, env *entry.Envelope) error,
	fn func(e *log.Entry, t *logTxn) error) error {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(entry.MaxBody))
	if err != nil {
		return err
	}
	defer z.Close()
	for index := f.FirstIndex; index <= f.LastIndex; {
		entries, err := v.log.Read(index, f.LastIndex+1, 1<<20)
		if err != nil {
			return err
		}
		for i := range entries {
			e := &entries[i]
			index = e.Index + 1
			if e.Type != log.Normal || len(e.Data) == 0 {
				if err := note(e, nil); err != nil {
					return err
				}
				continue
			}
			if err := v.entry(z, e, note, fn); err != nil {
				return fmt.Errorf("entry %d: %w", e.Index, err)
			}
		}
	}
	return nil
}

func (v *binlogView) entry(z *zstd.Decoder, e *log.Entry, note func(*log.Entry, *entry.Envelope) error,
	fn func(*log.Entry, *logTxn) error) error {
	env, stored, err := entry.Parse(e.Data)
	switch {
	case err != nil:
		return err
	case env.Term != e.Term:
		return note(e, &env)
	case env.Kind == entry.Large:
		return v.large(e, &env, stored, fn)
	case env.Kind != entry.Transactions:
		return note(e, &env)
	}
	if stored, err = env.Unpack(z, stored, nil); err != nil {
		return err
	}
	r := entry.NewReader(&env, stored)
	var t logTxn
	for {
		more, err := r.Next(&t.Txn)
		if err != nil || !more {
			return err
		}
		if !v.wants(t.Number) {
			continue
		}
		t.each = func(fn func(events []byte) error) error { return fn(t.Events) }
		if err := fn(e, &t); err != nil {
			return err
		}
	}
}

// wants reports whether a transaction is between those that were named.
func (v *binlogView) wants(number uint64) bool {
	return number >= v.from && (v.to == 0 || number <= v.to)
}

// logTxn is a transaction of the log, and a way to its events: in one piece, or frame by frame.
type logTxn struct {
	entry.Txn
	each  func(fn func(events []byte) error) error
	large *entry.LargeBody // nil: its events are in its entry
}

// large is entry for one that has a body, which is read as often as it is asked for.
func (v *binlogView) large(e *log.Entry, env *entry.Envelope, stored []byte, fn func(*log.Entry, *logTxn) error) error {
	l, t, err := entry.ParseLarge(env, stored)
	if err != nil || !v.wants(t.Number) {
		return err
	}
	f, err := v.log.OpenBody(e.Index)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	z, err := body.NewDecoder()
	if err != nil {
		return err
	}
	defer z.Close()
	return fn(e, &logTxn{Txn: t, large: &l, each: func(fn func(events []byte) error) error {
		for r := body.NewReader(f, &l, z); ; {
			_, events, err := r.Next()
			if err == io.EOF {
				return nil
			}
			if err == nil {
				err = fn(events)
			}
			if err != nil {
				return err
			}
		}
	}})
}

func (v *binlogView) print() error {
	files, err := v.files()
	if err != nil {
		return err
	}
	uuid := uuidText(v.group)
	for i := range files {
		f := &files[i]
		_, _ = fmt.Fprintf(v.w, "# %s\n", f.Name)
		err := v.each(f, func(e *log.Entry, env *entry.Envelope) error {
			if v.from != 0 || v.to != 0 {
				return nil
			}
			what := "empty"
			switch {
			case e.Type != log.Normal:
				what = "change of the members"
			case env != nil && env.Term != e.Term:
				what = "of a leader that was one no more: no effect"
			case env != nil:
				what = env.Kind.String()
			}
			_, err := fmt.Fprintf(v.w, "entry %d, term %d: %s\n", e.Index, e.Term, what)
			return err
		}, func(e *log.Entry, t *logTxn) error { return v.transaction(uuid, e, t) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *binlogView) transaction(uuid string, e *log.Entry, t *logTxn) error {
	more := ""
	if c := t.Trace.String(); c != "" {
		more = ", trace " + c
	}
	if l := t.large; l != nil {
		more += fmt.Sprintf(", large: %d events of %d bytes in %d frames of %d", l.Events, l.Plain, l.Frames, l.Stored)
	}
	_, err := fmt.Fprintf(v.w, "%s:%d  entry %d, term %d, %s, after %d%s\n", uuid, t.Number, e.Index, e.Term,
		time.UnixMicro(t.Time).UTC().Format("2006-01-02 15:04:05.000000"), t.DependsOn, more)
	if err != nil {
		return err
	}
	return t.each(func(events []byte) error { return printEvents(v.w, events) })
}

// printEvents writes a line for each event.
func printEvents(w io.Writer, events []byte) error {
	r := event.NewReader(events)
	var ev event.Event
	table := ""
	for {
		more, err := r.Next(&ev)
		if err != nil || !more {
			return err
		}
		text := ""
		switch ev.Type {
		case event.TypeTableMap:
			m, err := event.ParseTableMap(&ev)
			if err != nil {
				return err
			}
			table = m.Schema + "." + m.Name
			continue
		case event.TypeQuery:
			q, err := event.ParseQuery(&ev)
			if err != nil {
				return err
			}
			text = string(q.Text)
		case event.TypeWriteRows, event.TypeUpdateRows, event.TypeDeleteRows:
			text = table
		}
		if _, err := fmt.Fprintf(w, "    %-12v %6d bytes  %s\n", ev.Type, len(ev.Raw), text); err != nil {
			return err
		}
	}
}

// export writes each file as a standard binlog file.
func (v *binlogView) export(dir string) error {
	files, err := v.files()
	if err != nil {
		return err
	}
	// What is in the files is as secret as the data: rows, and passwords of accounts, hashed.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for i := range files {
		name := filepath.Join(dir, files[i].Name)
		if err := v.exportFile(&files[i], name, i < len(files)-1); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		_, _ = fmt.Fprintln(v.w, name)
	}
	return nil
}

func (v *binlogView) exportFile(f *log.FileInfo, name string, more bool) (err error) {
	// An existing file may be the log itself.
	out, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	buf := bufio.NewWriterSize(out, 1<<20)
	w := event.NewWriter(buf, event.WriterOptions{UUID: event.UUID(v.group), ServerID: 1})
	var previous event.GTIDSet
	if f.FirstNumber > 1 {
		previous = event.GTIDSet{{UUID: event.UUID(v.group), First: 1, Last: f.FirstNumber - 1}}
	}
	var last int64
	begun := false
	begin := func(at int64) error {
		if begun {
			return nil
		}
		begun = true
		return w.Begin(uint32(at/1e6), previous)
	}
	base := f.FirstNumber - 1
	err = v.each(f, func(*log.Entry, *entry.Envelope) error { return nil }, func(_ *log.Entry, t *logTxn) error {
		last = t.Time
		if err := begin(t.Time); err != nil {
			return err
		}
		return w.Transaction(&event.Transaction{Number: t.Number, LastCommitted: t.DependsOn - min(t.DependsOn, base),
			Sequence: t.Number - base, Time: t.Time, Each: t.each})
	})
	if err == nil {
		err = begin(0)
	}
	if err == nil && more {
		err = w.Rotate(uint32(last/1e6), log.FileName(f.Number+1))
	}
	return errors.Join(err, buf.Flush())
}

func uuidText(b [16]byte) string {
	h := fmt.Sprintf("%x", b[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}
