package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/types"
)

// fileBuffer is how much of a file that a statement writes or reads is in memory, in bytes.
const fileBuffer = 64 << 10

// mayUseFiles refuses files of this node's to who may not have them. Errors: 1227; 1290, secure_file_priv names no directory.
func (s *Session) mayUseFiles() error {
	if a := s.privileges(); a != everything && !a.Global(priv.File) {
		return sqlerr.New(sqlerr.SpecificAccessDeniedError, "FILE")
	}
	if s.m.opt.Files == nil {
		return sqlerr.New(sqlerr.OptionPreventsStatement, "--secure-file-priv")
	}
	return nil
}

// runIntoFile is a query INTO OUTFILE or DUMPFILE. A file that is not written to its end is removed.
func (s *Session) runIntoFile(ctx context.Context, c *compiled, into *ast.IntoFile) (out Outcome, err error) {
	if err := s.mayUseFiles(); err != nil {
		return out, err
	}
	w, err := s.newFileWriter(c.columns, into)
	if err != nil {
		return out, err
	}
	if err := s.Hold(fileBuffer); err != nil {
		return out, err
	}
	defer func() { _ = s.Hold(-fileBuffer) }()
	name, ok := s.m.opt.Files.Inside(into.Name)
	if !ok {
		return out, sqlerr.New(sqlerr.OptionPreventsStatement, "--secure-file-priv")
	}
	f, err := s.m.opt.Files.Create(name)
	if err != nil {
		return out, fileError(sqlerr.EECantCreateFile, into.Name, err)
	}
	w.out = bufio.NewWriterSize(f, fileBuffer)
	rows, err := s.produceInto(ctx, c, w)
	if err == nil {
		err = w.failed(w.out.Flush())
	}
	if e := f.Close(); err == nil {
		err = w.failed(e)
	}
	if err != nil {
		_ = s.m.opt.Files.Remove(name) // the statement's error says more
		var broken *writerError
		if errors.As(err, &broken) { // it is the file's, not the client's connection's
			err = broken.err
		}
		return out, err
	}
	s.foundRows = rows
	out.AffectedRows = rows
	return out, nil
}

// fileError is what a statement is told of a file of the node's.
func fileError(code sqlerr.Code, name string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return sqlerr.New(sqlerr.FileExistsError, name)
	}
	number, text := file.Reason(err)
	return sqlerr.New(code, name, number, text)
}

// fileWriter writes rows into a file. It is a ResultWriter.
type fileWriter struct {
	s       *Session
	into    *ast.IntoFile
	columns []ResultColumn
	charset *charsetInfo // nil: values keep theirs
	out     *bufio.Writer
	text    []byte
	rows    uint64

	escape   int // the character that escapes, or -1
	enclosed int // the character around values, or -1
	term     int // what fields end with begins with it, or -1
	line     int // what lines end with begins with it, or -1
	double   bool
	unsafe   bool
	lineEnd  string
}

// Characters that mean something behind the one that escapes, and those that may stand in numbers: who has them for a
// separator is told that what comes of it may not be read back.
const (
	escapedMeaning = "ntrb0ZN"
	ofNumbers      = ".0123456789e+-"
)

func (s *Session) newFileWriter(columns []ResultColumn, into *ast.IntoFile) (*fileWriter, error) {
	w := &fileWriter{s: s, into: into, columns: columns, escape: -1, enclosed: -1, term: -1, line: -1, lineEnd: into.Lines.Terminated}
	if into.Dump {
		return w, nil
	}
	if into.Charset != "" {
		cs, err := charsetNamed(into.Charset)
		if err != nil {
			return nil, err
		}
		w.charset = &cs
	}
	f := &into.Fields
	switch {
	case len(f.Enclosed) > 1 || len(f.Escaped) > 1:
		return nil, sqlerr.New(sqlerr.WrongFieldTerminators)
	case f.Terminated == "" && f.Enclosed == "":
		return nil, notSupported("INTO OUTFILE of fields with fixed lengths")
	}
	for _, text := range []string{f.Terminated, f.Enclosed, f.Escaped, into.Lines.Starting, into.Lines.Terminated} {
		if strings.ContainsFunc(text, func(r rune) bool { return r > 127 }) {
			s.diag.warn(sqlerr.New(sqlerr.WarnNonASCIISeparatorNotImplemented))
			break
		}
	}
	if w.lineEnd == "" {
		w.lineEnd = f.Terminated
	}
	first := func(text string) int {
		if text == "" {
			return -1
		}
		return int(text[0])
	}
	w.escape, w.enclosed, w.term, w.line = first(f.Escaped), first(f.Enclosed), first(f.Terminated), first(w.lineEnd)
	separator := w.term
	if w.enclosed >= 0 {
		separator = w.enclosed
	}
	w.double = strings.IndexByte(escapedMeaning, byte(separator)) >= 0 //nolint:gosec // a byte
	w.unsafe = strings.IndexByte(ofNumbers, byte(separator)) >= 0      //nolint:gosec // a byte
	if (w.enclosed < 0 || f.OptionallyEnclosed) && w.term >= 0 && strings.IndexByte(escapedMeaning+ofNumbers, byte(w.term)) >= 0 {
		s.diag.warn(sqlerr.New(sqlerr.AmbiguousFieldTerm))
		w.term = -1 // it is not escaped then
	}
	return w, nil
}

// Columns is part of ResultWriter: a file has no heading.
func (w *fileWriter) Columns([]ResultColumn) error { return nil }

// Done is part of ResultWriter.
func (w *fileWriter) Done(Outcome) error { return nil }

// Rows writes rows. Errors: 1172, DUMPFILE takes one row only; those of the file.
func (w *fileWriter) Rows(b *types.Batch) error {
	for i := range b.Len() {
		if i%64 == 0 {
			if err := w.s.interrupted(); err != nil {
				return err
			}
		}
		w.rows++
		if w.into.Dump && w.rows > 1 {
			return sqlerr.New(sqlerr.TooManyRows)
		}
		if err := w.row(b, i); err != nil {
			return w.failed(err)
		}
	}
	return nil
}

// failed is the error of a file that could not be written.
func (w *fileWriter) failed(err error) error {
	if err == nil {
		return nil
	}
	var known *sqlerr.Error
	if errors.As(err, &known) {
		return err
	}
	return fileError(sqlerr.EEWrite, w.into.Name, err)
}

func (w *fileWriter) row(b *types.Batch, i int) error {
	if w.into.Dump {
		for c := range w.columns {
			if v := b.Vecs[c].Value(i); !v.IsNull() {
				w.text = types.AppendText(w.text[:0], v, w.columns[c].Type, w.s.x.Location)
				_, _ = w.out.Write(w.text) // a bufio.Writer keeps its error, up to Flush
			}
		}
		return nil
	}
	_, _ = w.out.WriteString(w.into.Lines.Starting)
	for c := range w.columns {
		if c > 0 {
			_, _ = w.out.WriteString(w.into.Fields.Terminated)
		}
		if err := w.field(b.Vecs[c].Value(i), c); err != nil {
			return err
		}
	}
	_, err := w.out.WriteString(w.lineEnd)
	return err
}

// field writes a value.
func (w *fileWriter) field(v types.Value, c int) error {
	t := w.columns[c].Type
	if v.IsNull() {
		null := "NULL"
		if w.escape >= 0 {
			null = w.into.Fields.Escaped + "N"
		}
		_, err := w.out.WriteString(null)
		return err
	}
	w.text = types.AppendText(w.text[:0], v, t, w.s.x.Location)
	isText := !isNumeric(t)
	if isText && w.charset != nil {
		w.convert(t, c)
	}
	enclosed := w.enclosed >= 0 && (isText || !w.into.Fields.OptionallyEnclosed)
	if enclosed {
		_ = w.out.WriteByte(byte(w.enclosed))
	}
	if w.escape >= 0 && (isText || enclosed && w.unsafe) {
		w.escaped(enclosed)
	} else {
		_, _ = w.out.Write(w.text)
	}
	if enclosed {
		return w.out.WriteByte(byte(w.enclosed))
	}
	return nil
}

// escaped writes the text with what would end it marked.
func (w *fileWriter) escaped(enclosed bool) {
	end := w.term
	if enclosed {
		end = w.enclosed
	}
	multi := w.charset != nil && !w.charset.charset.FindsItself()
	for at := 0; at < len(w.text); at++ {
		if multi {
			if n := w.charset.charset.CharLen(w.text[at:]); n > 1 { // whose bytes mean nothing
				_, _ = w.out.Write(w.text[at : at+n])
				at += n - 1
				continue
			}
		}
		x := w.text[at]
		switch {
		case int(x) == end && w.double && enclosed:
			_ = w.out.WriteByte(x)
		case int(x) == w.escape, int(x) == end, int(x) == w.line:
			_ = w.out.WriteByte(byte(w.escape))
		case x == 0:
			_ = w.out.WriteByte(byte(w.escape))
			x = '0'
		}
		_ = w.out.WriteByte(x)
	}
}

// convert turns the text into the file's character set. Characters that it lacks become question marks, with a warning.
func (w *fileWriter) convert(t *types.Type, c int) {
	from := types.CharsetUTF8MB4
	switch {
	case t.IsText():
		from = t.Charset()
	case t.Class() == types.ClassBytes && len(t.Members) == 0:
		return // bytes
	}
	if from == w.charset.charset {
		return
	}
	text, bad := types.Convert(nil, w.text, from, w.charset.charset)
	if bad < 0 {
		w.text = append(w.text[:0], text...)
		return
	}
	w.s.diag.warn(sqlerr.Newf(sqlerr.TruncatedWrongValueForField, "Incorrect string value: '%s' for column '%s' at row %d",
		hexBytes(w.text[bad:]), w.columns[c].Name, w.rows))
	text = nil
	for rest := w.text; len(rest) > 0; {
		char := from.Prefix(rest, 1)
		if len(char) == 0 {
			char = rest[:1]
		}
		one, bad := types.Convert(nil, char, from, w.charset.charset)
		if bad >= 0 {
			one = []byte{'?'}
		}
		text = append(text, one...)
		rest = rest[len(char):]
	}
	w.text = append(w.text[:0], text...)
}

// isNumeric reports whether values of a type are numbers, which are not enclosed optionally.
func isNumeric(t *types.Type) bool {
	switch t.Class() {
	case types.ClassInt, types.ClassUint:
		return len(t.Members) == 0
	case types.ClassDouble, types.ClassDecimal:
		return true
	}
	return false
}

// readFile is LOAD_FILE(): nil if there is no such file that the session may read, or one that is too long.
func (s *Session) readFile(path string) ([]byte, error) {
	if s.mayUseFiles() != nil {
		return nil, nil
	}
	f, size, err := s.openFile(path)
	if err != nil {
		return nil, nil
	}
	defer func() { _ = f.Close() }()
	limit := s.value(variables["max_allowed_packet"]).n
	if uint64(size) > limit { //nolint:gosec // not negative
		s.diag.warn(sqlerr.New(sqlerr.WarnAllowedPacketOverflowed, "load_file", limit))
		return nil, nil
	}
	return s.readAll(f, size)
}

// openFile opens a file of secure_file_priv, and tells how long it is.
func (s *Session) openFile(path string) (io.ReadCloser, int64, error) {
	name, ok := s.m.opt.Files.Inside(path)
	if !ok {
		return nil, 0, fs.ErrNotExist
	}
	return s.m.opt.Files.Open(name)
}

// readAll reads n bytes, looking for KILL on the way. A file that has become shorter meanwhile gives what it has.
func (s *Session) readAll(f io.Reader, n int64) ([]byte, error) {
	if err := s.account(n); err != nil {
		return nil, err
	}
	text := make([]byte, n)
	for done := 0; done < len(text); {
		if err := s.interrupted(); err != nil {
			return nil, err
		}
		k, err := f.Read(text[done:min(len(text), done+fileBuffer)])
		if done += k; err != nil || k == 0 {
			return text[:done], nil
		}
	}
	return text, nil
}

// hexBytes shows bytes as MySQL does in warnings: the first six.
func hexBytes(b []byte) string {
	text := ""
	for i, x := range b {
		if i == 6 {
			return text + "..."
		}
		if x < 128 {
			text += string(rune(x))
		} else {
			text += fmt.Sprintf("\\x%02X", x)
		}
	}
	return text
}
