package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"
)

// historyMax is how many lines the history keeps.
const historyMax = 1000

// history is the lines of earlier shells and of this one, newest last.
type history struct {
	lines []string
	file  string
}

func openHistory() *history {
	h := &history{}
	home, err := os.UserHomeDir()
	if err != nil {
		return h
	}
	h.file = filepath.Join(home, ".trireme_history")
	if b, err := os.ReadFile(h.file); err == nil {
		h.lines = strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		h.trim()
	}
	return h
}

func (h *history) trim() { h.lines = h.lines[max(0, len(h.lines)-historyMax):] }

// Add implements term.History. What may hold a password is not kept.
func (h *history) Add(line string) {
	lower := strings.ToLower(line)
	if strings.TrimSpace(line) == "" || strings.Contains(lower, "identified") || strings.Contains(lower, "password") {
		return
	}
	if n := len(h.lines); n > 0 && h.lines[n-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	h.trim()
}

// Len implements term.History.
func (h *history) Len() int { return len(h.lines) }

// At implements term.History: 0 is the newest line.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }

func (h *history) save() {
	if h.file != "" && len(h.lines) > 0 {
		_ = os.WriteFile(h.file, []byte(strings.Join(h.lines, "\n")+"\n"), 0o600)
	}
}

// interact reads lines from a terminal.
func (s *shell) interact(addr string) error {
	fd := int(os.Stdin.Fd())
	rw := struct {
		io.Reader
		io.Writer
	}{os.Stdin, os.Stdout}
	t := term.NewTerminal(rw, "sql> ")
	h := openHistory()
	t.History = h
	defer h.save()
	fmt.Printf("Connected to %s. Statements end with ; or \\G; help tells more, quit ends.\n", addr)
	var sp splitter
	for {
		if sp.pending() {
			t.SetPrompt("  -> ")
		} else {
			t.SetPrompt("sql> ")
		}
		line, err := s.readLine(t, fd)
		switch {
		case errors.Is(err, io.EOF):
			fmt.Println()
			return nil
		case errors.Is(err, term.ErrPasteIndicator):
		case err != nil:
			return err
		}
		if !sp.pending() {
			if done := s.word(line); done == wordQuit {
				return nil
			} else if done == wordDone {
				continue
			}
		}
		for _, st := range sp.add(line + "\n") {
			s.tell(s.statement(st))
		}
	}
}

// readLine reads a line; the terminal is raw only meanwhile, so that ^C ends statements.
func (s *shell) readLine(t *term.Terminal, fd int) (string, error) {
	state, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(fd, state) }()
	if w, h, err := term.GetSize(fd); err == nil && w > 0 { // some terminals do not tell it
		_ = t.SetSize(w, h)
	}
	return t.ReadLine()
}

type wordKind uint8

const (
	wordNone wordKind = iota // it is SQL
	wordDone
	wordQuit
)

// word does what a word of the shell asks for.
func (s *shell) word(line string) wordKind {
	fields := strings.Fields(strings.TrimSuffix(strings.TrimSpace(line), ";"))
	if len(fields) == 0 {
		return wordNone
	}
	switch first := strings.ToLower(fields[0]); {
	case len(fields) == 1 && (first == "quit" || first == "exit" || first == `\q`):
		return wordQuit
	case len(fields) == 1 && (first == "help" || first == `\h` || first == "?"):
		fmt.Println(help)
		return wordDone
	case len(fields) == 2 && first == "use":
		name := "`" + strings.ReplaceAll(strings.Trim(fields[1], "`"), "`", "``") + "`"
		s.tell(s.statement(statement{text: "USE " + name}))
		return wordDone
	}
	return wordNone
}

// tell shows an error, and connects again if the connection is lost.
func (s *shell) tell(err error) {
	if err == nil {
		return
	}
	fmt.Println(errorText(err))
	if s.conn.PingContext(context.Background()) != nil {
		if err := s.reconnect(); err != nil {
			fmt.Println("connecting again:", errorText(err))
			return
		}
		fmt.Println("connected again; the session's state is lost")
	}
}
