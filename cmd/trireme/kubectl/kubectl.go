package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"text/tabwriter"
)

// ErrUsage says that what was asked makes no sense; the user has been told.
var ErrUsage = errors.New("usage")

// ErrFailed says that the answer is no, or that kubectl could not do it; the user has been told.
var ErrFailed = errors.New("failed")

// Plugin does what is asked by means of kubectl.
type Plugin struct {
	// Kubectl is the program.
	Kubectl        string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Terminal tells that a person is at both ends.
	Terminal bool

	ctx     context.Context
	cluster []string // options of kubectl that tell which cluster
	// namespace is that of the release; empty: that of kubectl's context.
	namespace string
	release   string // empty: the only one there is
	name      string // of the group in the release; empty: the only one there is
}

// command is one thing that the plugin does.
type command struct {
	words, summary string
	run            func(p *Plugin, args []string) error
}

func commands() []command {
	return []command{
		{"status", "how the pods, their members and their claims stand, and what they wait for", (*Plugin).status},
		{"sql [options]", "trireme sql in a ready pod, as root", (*Plugin).sql},
		{"admin <command>", "trireme admin in a ready pod, as root", (*Plugin).admin},
		{"switchover [pod]", "hand leadership to another member, or to that of a pod", (*Plugin).switchover},
		{"backup", "make a backup now, as the release's CronJob does, and wait for it", (*Plugin).backup},
		{"backups", "what backups there are", (*Plugin).backups},
		{"logs [options]", "the logs of all pods; options are those of kubectl logs", (*Plugin).logs},
		{"support-bundle [file]", "collect what others need to find a fault into a .tar.gz", (*Plugin).bundle},
	}
}

const options = `
  -n, --namespace string    the namespace of the release
      --release string      the release of Helm, if the namespace has several of them
      --name string         the group, if the release has several: the chart's alias, or nameOverride
      --context string      a context of kubectl's configuration
      --kubeconfig file     kubectl's configuration
`

func usage(w io.Writer) {
	_, _ = fmt.Fprint(w, "Looks after a group of Trireme that was installed by its chart, by means of kubectl.\n\n"+
		"Usage: kubectl trireme [options] <command>\n\nCommands:\n")
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, c := range commands() {
		_, _ = fmt.Fprintf(t, "  %s\t%s\n", c.words, c.summary)
	}
	_ = t.Flush()
	_, _ = fmt.Fprint(w, "\nOptions:"+options+"\nRestoring is an installation with restore.from: docs/operations-kubernetes.md.\n")
}

// Run does what the words ask for.
func (p *Plugin) Run(args []string) error {
	args, err := p.readOptions(args)
	if err != nil {
		return p.misuse("%v", err)
	}
	if len(args) == 0 {
		usage(p.Stderr)
		return ErrUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(p.Stdout)
		return nil
	}
	var stop context.CancelFunc
	p.ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, c := range commands() {
		if name, _, _ := strings.Cut(c.words, " "); name == args[0] {
			return c.run(p, args[1:])
		}
	}
	return p.misuse("there is no command %q", args[0])
}

func (p *Plugin) misuse(format string, a ...any) error {
	_, _ = fmt.Fprintf(p.Stderr, "kubectl trireme: "+format+"\n\n", a...)
	usage(p.Stderr)
	return ErrUsage
}

// readOptions takes the plugin's own options out of the words, up to a --.
func (p *Plugin) readOptions(args []string) (rest []string, err error) {
	for len(args) > 0 {
		word := args[0]
		if word == "--" {
			return append(rest, args[1:]...), nil
		}
		name, value, given := strings.Cut(word, "=")
		if !strings.HasPrefix(name, "-") {
			rest, args = append(rest, word), args[1:]
			continue
		}
		if strings.HasPrefix(word, "-n") && !strings.HasPrefix(word, "-n=") && len(word) > 2 && word[1] == 'n' {
			name, value, given = "-n", word[2:], true // as kubectl takes it
		}
		switch "-" + strings.TrimLeft(name, "-") {
		case "-n", "-namespace", "-release", "-name", "-context", "-kubeconfig":
		default:
			rest, args = append(rest, word), args[1:]
			continue
		}
		args = args[1:]
		if !given {
			if len(args) == 0 {
				return nil, fmt.Errorf("%s needs a value", name)
			}
			value, args = args[0], args[1:]
		}
		switch name = strings.TrimLeft(name, "-"); name {
		case "n", "namespace":
			p.namespace = value
		case "release":
			p.release = value
		case "name":
			p.name = value
		default:
			p.cluster = append(p.cluster, "--"+name+"="+value)
		}
	}
	return rest, nil
}

// command is a call of kubectl.
func (p *Plugin) command(args ...string) *exec.Cmd {
	all := append([]string{}, p.cluster...)
	if p.namespace != "" {
		all = append(all, "--namespace="+p.namespace)
	}
	cmd := exec.CommandContext(p.ctx, p.Kubectl, append(all, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd
}

// output is what kubectl answers; its own words are the error.
func (p *Plugin) output(args ...string) ([]byte, error) {
	cmd := p.command(args...)
	var told strings.Builder
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	if p.ctx.Err() != nil {
		return out, p.ctx.Err()
	}
	if text := words(told.String()); text != "" {
		return out, errors.New(text)
	}
	return out, fmt.Errorf("%s %s: %w", p.Kubectl, args[0], err)
}

// logLine is a line of the log of kubectl's library, as E0102 15:04:05.000000 ….
var logLine = regexp.MustCompile(`^[EWI][0-9]{4} `)

// words are those of kubectl for its user.
func words(told string) string {
	var all []string
	for line := range strings.Lines(told) {
		if line = strings.TrimSpace(line); line != "" && !logLine.MatchString(line) {
			all = append(all, line)
		}
	}
	return strings.Join(all, "\n")
}

// through lets kubectl speak with the user. That it failed it has told.
func (p *Plugin) through(args ...string) error {
	cmd := p.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Stdin, p.Stdout, p.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return ErrFailed
	}
	return err
}
