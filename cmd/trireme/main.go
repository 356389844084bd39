// Trireme is the one program: server, local group, shell and tools.
//
//	trireme server --datadir=/var/lib/trireme
//	trireme demo
//	trireme sql -e 'SELECT 1'
//
// Where it is called kubectl-trireme it is a plugin of kubectl (package kubectl).
//
// Every subcommand tells its options with --help. It exits with 0 when it did what was
// asked, with 1 when it could not, with 2 when what was asked makes no sense.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"github.com/triremedb/trireme/cmd/trireme/kubectl"
	"github.com/triremedb/trireme/server/node"
)

// subcommand is one of the program's uses.
type subcommand struct {
	name, summary string
	run           func(args []string) error
}

func subcommands() []subcommand {
	return []subcommand{
		{"server", "run a node", runServer},
		{"demo", "run a group of nodes on this machine", runDemo},
		{"sql", "a shell for SQL, or one statement", runSQL},
		{"status", "how the members of a group stand", runStatus},
		{"admin", "look into nodes and change a group: members, settings, sessions, locks", runAdmin},
		{"backup", "copy a group's database into a directory, while it is used", runBackup},
		{"restore", "make a new group of a backup", runRestore},
		{"regroup", "make a new group of one member's directory, when the majority is lost", runRegroup},
		{"restore-claim", "on Kubernetes, have a backup restored into the claim of a group's first member", runRestoreClaim},
		{"binlog", "list, print, export and verify a node's log", runBinlog},
		{"check", "check the data of a node that is stopped", runCheck},
		{"preflight", "tell before an upgrade whether it may begin", runPreflight},
		{"prepare", "make way for Helm before it changes a release", runPrepare},
		{"completion", "what makes a shell complete these words", runCompletion},
		{"version", "tell the version", func([]string) error {
			fmt.Println("trireme", node.Version)
			return nil
		}},
	}
}

// errUsage says that what was asked makes no sense; the user has been told.
var errUsage = errors.New("usage")

// errFailed says that the answer is no, and that the user has been told.
var errFailed = errors.New("failed")

func main() {
	if strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == "kubectl-trireme" {
		os.Exit(exitCode("kubectl trireme", runKubectl(os.Args[1:])))
	}
	os.Exit(run(os.Args[1:]))
}

// runKubectl is what the program does where kubectl finds it as its plugin.
func runKubectl(args []string) error {
	p := kubectl.Plugin{Kubectl: "kubectl", Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Terminal: term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))}
	err := p.Run(args)
	switch {
	case errors.Is(err, kubectl.ErrUsage):
		return errUsage
	case errors.Is(err, kubectl.ErrFailed):
		return errFailed
	}
	return err
}

func run(args []string) int {
	if len(args) == 0 {
		usage(os.Stderr)
		return 2
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(os.Stdout)
		return 0
	case "--version":
		args[0] = "version"
	}
	for _, c := range subcommands() {
		if c.name == args[0] {
			return exitCode("trireme "+c.name, c.run(args[1:]))
		}
	}
	fmt.Fprintf(os.Stderr, "trireme: there is no subcommand %q\n\n", args[0])
	usage(os.Stderr)
	return 2
}

func exitCode(program string, err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	case errors.Is(err, errFailed):
		return 1
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
	return 1
}

func usage(w io.Writer) {
	_, _ = fmt.Fprintf(w, "Trireme is a replicated SQL database of the MySQL dialect.\n\nUsage: trireme <subcommand> [options]\n\n")
	for _, c := range subcommands() {
		_, _ = fmt.Fprintf(w, "  %-13s %s\n", c.name, c.summary)
	}
	_, _ = fmt.Fprintf(w, "\ntrireme <subcommand> --help tells the options.\n")
}

// flags returns a set of flags that describes itself.
func flags(name, text string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(os.Stderr)
	f.Usage = func() {
		_, _ = fmt.Fprintf(f.Output(), "Usage: trireme %s\n\n%s\n\nOptions:\n", name, text)
		f.PrintDefaults()
	}
	return f
}

// parse reads the flags, which may stand before, between and after the other words, up to a
// --. Errors have been told.
func parse(f *flag.FlagSet, args []string) error {
	words := []string{"--"}
	for {
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			return err
		} else if err != nil {
			return errUsage
		}
		rest := f.Args()
		if read := len(args) - len(rest); len(rest) == 0 || read > 0 && args[read-1] == "--" {
			return f.Parse(append(words, rest...))
		}
		words, args = append(words, rest[0]), rest[1:]
	}
}

// misuse tells what makes no sense.
func misuse(f *flag.FlagSet, format string, a ...any) error {
	_, _ = fmt.Fprintf(f.Output(), format+"\n\n", a...)
	f.Usage()
	return errUsage
}
