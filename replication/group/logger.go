package group

import (
	"context"
	"fmt"
	"log/slog"
)

// raftLogger gives Raft's words to the node's log. Raft panics on what it takes for
// a broken invariant; the Raft task turns that into the node's end.
type raftLogger struct{ log *slog.Logger }

func (l raftLogger) emit(level slog.Level, format string, v []any) {
	if !l.log.Enabled(context.Background(), level) {
		return
	}
	text := ""
	if format == "" {
		text = fmt.Sprint(v...)
	} else {
		text = fmt.Sprintf(format, v...)
	}
	l.log.Log(context.Background(), level, text, "part", "raft")
}

// What Raft calls information is told in an operator's words elsewhere.
func (l raftLogger) Debug(v ...any)                 { l.emit(slog.LevelDebug, "", v) }
func (l raftLogger) Debugf(format string, v ...any) { l.emit(slog.LevelDebug, format, v) }
func (l raftLogger) Info(v ...any)                  { l.emit(slog.LevelDebug, "", v) }
func (l raftLogger) Infof(format string, v ...any)  { l.emit(slog.LevelDebug, format, v) }
func (l raftLogger) Warning(v ...any)               { l.emit(slog.LevelWarn, "", v) }
func (l raftLogger) Warningf(format string, v ...any) {
	l.emit(slog.LevelWarn, format, v)
}
func (l raftLogger) Error(v ...any)                 { l.emit(slog.LevelError, "", v) }
func (l raftLogger) Errorf(format string, v ...any) { l.emit(slog.LevelError, format, v) }
func (l raftLogger) Fatal(v ...any)                 { l.Panic(v...) }
func (l raftLogger) Fatalf(format string, v ...any) { l.Panicf(format, v...) }
func (l raftLogger) Panic(v ...any)                 { panic(raftPanic(fmt.Sprint(v...))) }
func (l raftLogger) Panicf(format string, v ...any) { panic(raftPanic(fmt.Sprintf(format, v...))) }

// raftPanic is what Raft said when it gave up.
type raftPanic string

func (p raftPanic) Error() string { return "raft: " + string(p) }
