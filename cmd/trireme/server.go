package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"
)

const serverText = `Usage: trireme server [--config=file] [--setting=value ...]

Runs a node until it gets SIGTERM or SIGINT; then it hands leadership over, lets statements
end and stops. A second signal stops it at once.

A setting comes from the first of: an option (--max-connections=100), the environment
(TRIREME_MAX_CONNECTIONS=100), the file of --config (max_connections = 100), its default.
--print-config prints what is in force, as a file, and stops.
--check-config tells what a start would refuse, and stops: it opens neither data nor ports.
It exits with 0 if nothing is wrong.
Global variables of sessions (sql_mode, wait_timeout, …) may be set the same way.
`

// checkVariable checks a global variable of sessions.
func checkVariable(name, value string) error {
	_, err := session.NewManager(session.Options{Env: env.Real(), Variables: map[string]string{name: value}})
	return err
}

// notRight tells what is wrong with the configuration.
func notRight(name string, err error) error {
	fmt.Fprintf(os.Stderr, "trireme %s: the configuration is not right:\n%v\n", name, err)
	return errUsage
}

func runServer(args []string) error {
	cfg, err := config.Load(config.Sources{Args: args, Env: os.Environ(), Variable: checkVariable})
	if cfg != nil && cfg.Help {
		fmt.Print(serverText)
		return config.Help(os.Stdout)
	}
	if err == nil && cfg.CheckConfig {
		err = node.Check(cfg, false)
	}
	if err != nil {
		return notRight("server", err)
	}
	if cfg.CheckConfig {
		fmt.Println("the configuration is right")
		return nil
	}
	if cfg.PrintConfig {
		return cfg.Print(os.Stdout)
	}
	log := logger(cfg)
	if err := limitMemory(cfg, thisMachine(), log); err != nil {
		return notRight("server", err)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	opened := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			// A start that is cut short is a crash, which the next one recovers from; but it
			// was asked for.
			log.Info("stopped while starting", "signal", s.String())
			os.Exit(0)
		case <-opened:
		}
	}()
	n, err := node.Open(cfg, log)
	close(opened)
	if err != nil {
		return err
	}
	log.Info("ready for clients", "addr", n.MainAddr(), "read_addr", n.ReadAddr(), "http", n.HTTPAddr())
	select {
	case s := <-signals:
		log.Info("stopping", "signal", s.String())
	case <-n.Failed():
		log.Error("the node has stopped by itself", "error", n.Err())
	}
	return stop(n, cfg, log, signals)
}

// awaitSpared lets the node go on as long as its group needs it; another signal ends that.
func awaitSpared(n *node.Node, signals <-chan os.Signal) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	n.AwaitSpared(ctx)
}

// cutOff is how long statements that were cut off have to end.
const cutOff = 10 * time.Second

// stop ends the node; another signal cuts it short, and so does a statement that does not
// end though it was cut off.
func stop(n *node.Node, cfg *config.Config, log *slog.Logger, signals <-chan os.Signal) error {
	failed := n.Err()
	awaitSpared(n, signals)
	ctx, cancel := context.WithTimeout(context.Background(), cfg.Duration("shutdown_timeout"))
	defer cancel()
	go func() {
		select {
		case <-signals:
			log.Warn("stopped at once: the next start recovers")
			os.Exit(1)
		case <-ctx.Done():
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			time.Sleep(cutOff)
			log.Warn("statements do not end; stopped at once: the next start recovers")
			os.Exit(1)
		}
	}()
	err := n.Stop(ctx)
	if failed != nil {
		return failed
	}
	if err == nil {
		log.Info("stopped")
	}
	return err
}

func logger(cfg *config.Config) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.String("log_level"))) // one of the choices
	o := &slog.HandlerOptions{Level: level}
	if cfg.String("log_format") == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, o))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, o))
}
