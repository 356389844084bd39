package main

import (
	"database/sql"
	"fmt"
	"strings"
	"unicode/utf8"
)

// tableRows is how many rows a table looks at to find its columns' widths, so that a
// long result is shown as it comes.
const tableRows = 1000

// show writes a row set: as a table, as columns below each other, or with tabs.
func (s *shell) show(rows *sql.Rows, vertical bool) error {
	cols, err := rows.Columns()
	if err != nil || len(cols) == 0 {
		if err == nil && s.table {
			_, err = fmt.Fprintln(s.out, "ok")
		}
		return err
	}
	sink := s.sink(cols, vertical)
	raw := make([]sql.RawBytes, len(cols))
	to := make([]any, len(cols))
	for i := range raw {
		to[i] = &raw[i]
	}
	n := 0
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		row := make([]string, len(cols))
		for i, v := range raw {
			row[i] = "NULL"
			if v != nil {
				row[i] = string(v)
			}
		}
		n++
		if err := sink.row(row); err != nil {
			return err
		}
	}
	if err := sink.end(); err != nil {
		return err
	}
	if rows.Err() == nil && (s.table || vertical) {
		_, err = fmt.Fprintf(s.out, "%d %s\n", n, plural(n, "row"))
	}
	return err
}

func plural(n int, what string) string {
	if n == 1 {
		return what
	}
	return what + "s"
}

// sink takes the rows of a set.
type sink interface {
	row(values []string) error
	end() error
}

func (s *shell) sink(cols []string, vertical bool) sink {
	switch {
	case vertical:
		return &verticalSink{s: s, cols: cols}
	case s.table:
		return &tableSink{s: s, cols: cols}
	}
	return &tabSink{s: s, cols: cols}
}

type verticalSink struct {
	s    *shell
	cols []string
	n    int
}

func (v *verticalSink) row(values []string) error {
	v.n++
	var b strings.Builder
	fmt.Fprintf(&b, "*************************** %d. row ***************************\n", v.n)
	width := 0
	for _, c := range v.cols {
		width = max(width, utf8.RuneCountInString(c))
	}
	for i, c := range v.cols {
		fmt.Fprintf(&b, "%s%s: %s\n", strings.Repeat(" ", width-utf8.RuneCountInString(c)), c, values[i])
	}
	_, err := fmt.Fprint(v.s.out, b.String())
	return err
}

func (v *verticalSink) end() error { return nil }

// tabSink writes what scripts read: a line of names, then a line for each row, with
// tabs, line ends and backslashes escaped.
type tabSink struct {
	s     *shell
	cols  []string
	begun bool
}

var tabEscapes = strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\x00", `\0`)

func (t *tabSink) row(values []string) error {
	if !t.begun {
		t.begun = true
		if _, err := fmt.Fprintln(t.s.out, strings.Join(t.cols, "\t")); err != nil {
			return err
		}
	}
	for i := range values {
		values[i] = tabEscapes.Replace(values[i])
	}
	_, err := fmt.Fprintln(t.s.out, strings.Join(values, "\t"))
	return err
}

func (t *tabSink) end() error { return nil }

type tableSink struct {
	s      *shell
	cols   []string
	rows   [][]string
	widths []int
}

func (t *tableSink) row(values []string) error {
	if t.widths != nil {
		return t.line(values)
	}
	t.rows = append(t.rows, values)
	if len(t.rows) == tableRows {
		return t.begin()
	}
	return nil
}

// begin writes the head and the rows that have been waiting for the widths.
func (t *tableSink) begin() error {
	t.widths = make([]int, len(t.cols))
	for _, row := range append([][]string{t.cols}, t.rows...) {
		for i, v := range row {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(v))
		}
	}
	if err := t.rule(); err != nil {
		return err
	}
	if err := t.line(t.cols); err != nil {
		return err
	}
	if err := t.rule(); err != nil {
		return err
	}
	for _, row := range t.rows {
		if err := t.line(row); err != nil {
			return err
		}
	}
	t.rows = nil
	return nil
}

func (t *tableSink) rule() error {
	var b strings.Builder
	for _, w := range t.widths {
		b.WriteString("+" + strings.Repeat("-", w+2))
	}
	_, err := fmt.Fprintln(t.s.out, b.String()+"+")
	return err
}

func (t *tableSink) line(values []string) error {
	var b strings.Builder
	for i, v := range values {
		b.WriteString("| " + v + strings.Repeat(" ", max(0, t.widths[i]-utf8.RuneCountInString(v))+1))
	}
	_, err := fmt.Fprintln(t.s.out, b.String()+"|")
	return err
}

func (t *tableSink) end() error {
	if t.widths == nil {
		if len(t.rows) == 0 {
			return nil // no rows, no table
		}
		if err := t.begin(); err != nil {
			return err
		}
	}
	return t.rule()
}
