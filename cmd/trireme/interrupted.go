package main

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// untilInterrupted has clean run before a signal ends the program. A closed pipe behind it is an error of writing from
// now on (EPIPE), and does not end it. What it returns runs clean, too, and lets signals end the program as ever.
func untilInterrupted(clean func() error) (done func() error) {
	once := sync.OnceValue(clean)
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // as nohup has it
			signal.Notify(signals, s)
		}
	}
	over := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			_ = once()
			signal.Reset(s)
			_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
		case <-over:
		}
	}()
	return sync.OnceValue(func() error {
		err := once()
		signal.Stop(signals)
		signal.Reset(syscall.SIGPIPE)
		close(over)
		return err
	})
}
