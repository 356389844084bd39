package kubectl

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// logBytes is how much of each container's log a bundle has, the newest.
const logBytes = 32 << 20

// secretNames are what names of secrets end with.
var secretNames = []string{"password", "passwd", "secret", "token", "credential", "authorization"}

var (
	secretWords = "(?:" + strings.Join(secretNames, "|") + ")"
	// secret finds the values of what a bundle must not have, in settings, options and JSON.
	secret = regexp.MustCompile(`(?i)([a-z0-9_.-]*` + secretWords + `["']?[ \t]*[:=][ \t]*)("(?:[^"\\]|\\.)*"|(?:(?:basic|bearer)[ \t]+)?[^\s",}]+)`)
	// secretPair finds them in JSON, and in JSON within JSON, where a variable's value stands behind its name.
	secretPair = regexp.MustCompile(`(?i)(\\*"name\\*"[ \t]*:[ \t]*\\*"[^"\\]*` + secretWords + `\\*"[ \t]*,\s*\\*"value\\*"[ \t]*:[ \t]*)(\\+"[^"]*"|"(?:[^"\\]|\\.)*")`)
	// secretLine is a line of YAML, or of kubectl's descriptions, whose value lasts to its end, or goes on in lines behind it that begin
	// further to the right. secretName is one after which the next has the value.
	secretLine = regexp.MustCompile(`(?i)^([ \t]*(?:- )?)[a-z0-9_.-]*` + secretWords + `[ \t]*:[ \t]*[^ \t]`)
	secretName = regexp.MustCompile(`(?i)^[ \t]*(?:- )?"?name"?:[ \t]*["']?[^"']*` + secretWords + `["']?,?[ \t]*$`)
	valueLine  = regexp.MustCompile(`^([ \t]*)"?value"?:[ \t]*[^ \t]`)
)

// unsecret removes them. Names of Secrets, files and keys go, too, which is better than too little.
func unsecret(text []byte) []byte {
	out := make([]byte, 0, len(text))
	named, within := false, -1 // the line before named a secret; the column of the key whose value goes on
	var lower []byte
	for line := range bytes.Lines(text) {
		words := bytes.TrimRight(line, "\r\n")
		if within >= 0 && (len(words) == 0 || len(words)-len(bytes.TrimLeft(words, " \t")) > within) {
			continue
		}
		within = -1
		lower = appendLower(lower[:0], words)
		if !named && !slices.ContainsFunc(secretNames, func(n string) bool { return bytes.Contains(lower, []byte(n)) }) {
			out = append(out, line...) // nearly all of a log, for which the expressions take long
			continue
		}
		key := secretLine.FindSubmatch(words)
		if key == nil && named {
			key = valueLine.FindSubmatch(words)
		}
		if named = secretName.Match(words); key == nil {
			out = append(out, secret.ReplaceAll(secretPair.ReplaceAll(line, []byte("${1}(removed)")), []byte("${1}(removed)"))...)
			continue
		}
		within = len(key[1])
		out = append(out, words[:bytes.IndexByte(words, ':')+1]...)
		out = append(out, " (removed)\n"...)
	}
	return out
}

// appendLower appends a text with small letters of ASCII.
func appendLower(to, text []byte) []byte {
	for _, c := range text {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		to = append(to, c)
	}
	return to
}

// archive is a .tar.gz that is being written, and what could not be had.
type archive struct {
	p      *Plugin
	dir    string // of all files in it
	tar    *tar.Writer
	now    time.Time
	failed []byte
}

func (a *archive) add(name string, text []byte) error {
	h := &tar.Header{Name: a.dir + "/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: a.now, Format: tar.FormatPAX}
	if err := a.tar.WriteHeader(h); err != nil {
		return err
	}
	_, err := a.tar.Write(text)
	return err
}

// ask adds what kubectl answers. What it cannot do is told in the archive: a bundle of a
// cluster that is not well lacks things.
func (a *archive) ask(name string, words ...string) error {
	text, err := a.p.output(words...)
	if a.p.ctx.Err() != nil {
		return a.p.ctx.Err()
	}
	if err != nil {
		a.failed = fmt.Appendf(a.failed, "%s: %v\n", name, err)
		if len(text) == 0 {
			return nil
		}
	}
	return a.add(name, unsecret(text))
}

// bundle writes what others need to find a fault: no rows, no statements, no Secrets.
func (p *Plugin) bundle(args []string) (err error) {
	if len(args) > 1 {
		return p.misuse("unexpected %q", args[1])
	}
	pods, err := p.pods()
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	a := &archive{p: p, dir: "trireme-" + p.release + now.Format("-20060102T150405Z"), now: now}
	file := a.dir + ".tar.gz"
	if len(args) > 0 {
		file = args[0]
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			_ = os.Remove(file)
		}
	}()
	z := gzip.NewWriter(f)
	a.tar = tar.NewWriter(z)
	if err := a.fill(pods); err != nil {
		return err
	}
	if err := errors.Join(a.tar.Close(), z.Close(), f.Sync()); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(p.Stdout, "%s\n", file)
	if len(a.failed) > 0 {
		_, _ = fmt.Fprintf(p.Stderr, "some things could not be had (missing.txt in it tells, too):\n%s", a.failed)
	}
	return nil
}

func (a *archive) fill(pods []pod) error {
	ours := instanceLabel + "=" + a.p.release
	kinds := "statefulsets,pods,persistentvolumeclaims,services,endpointslices,poddisruptionbudgets,networkpolicies,cronjobs,jobs,configmaps"
	asks := [][]string{
		{"version.txt", "version"},
		{"nodes.txt", "get", "nodes", "-o", "wide"},
		{"storageclasses.yaml", "get", "storageclasses", "-o", "yaml"},
		{"objects.yaml", "get", kinds, "-l", ours, "-o", "yaml"},
		{"objects.txt", "get", kinds, "-l", ours, "-o", "wide"},
		{"describe.txt", "describe", "statefulsets,pods,persistentvolumeclaims", "-l", ours},
		{"top.txt", "top", "pods", "-l", ours, "--containers"},
	}
	for i := range pods {
		name := pods[i].Meta.Name
		proxy := "/api/v1/namespaces/" + pods[i].Meta.Namespace + "/pods/" + name + ":18080/proxy/"
		tail := fmt.Sprintf("--limit-bytes=%d", logBytes)
		asks = append(asks,
			[]string{name + "/log.txt", "logs", name, "--all-containers", "--timestamps", "--tail=200000", tail},
			[]string{name + "/metrics.txt", "get", "--raw", proxy + "metrics"},
			[]string{name + "/readyz.txt", "get", "--raw", proxy + "readyz"})
		if pods[i].restarts() > 0 {
			asks = append(asks, []string{name + "/log-previous.txt", "logs", name, "-c", container, "--previous", "--timestamps", "--tail=200000", tail})
		}
		if pods[i].running() {
			asks = append(asks,
				append([]string{name + "/status.json"}, inside(name, "status", "--http=127.0.0.1:18080", "--json")...),
				append([]string{name + "/settings.json"}, inside(name, "admin", "-password-file="+passwordFile, "-changed", "-o=json", "settings")...))
		}
	}
	for _, words := range asks {
		if err := a.ask(words[0], words[1:]...); err != nil {
			return err
		}
	}
	events, err := a.p.events()
	if err != nil {
		a.failed = fmt.Appendf(a.failed, "events.txt: %v\n", err)
	}
	var text []byte
	for i := range events {
		e := &events[i]
		text = fmt.Appendf(text, "%s %s %s/%s %s: %s\n", e.at().UTC().Format(time.RFC3339), e.Type, e.Involved.Kind, e.Involved.Name, e.Reason, e.Message)
	}
	if err := a.add("events.txt", text); err != nil {
		return err
	}
	if len(a.failed) == 0 {
		return nil
	}
	return a.add("missing.txt", a.failed)
}
