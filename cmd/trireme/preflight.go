package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/kubernetes"
	"github.com/triremedb/trireme/server/node"
)

const preflightText = `Tells before an upgrade whether it may begin; run it with the program that is to come.

With --config or settings behind --, the configuration has to be one that a node would start with. Files that
it names are looked at if their directories are on this machine. With --http, every voting member of the group
has to be online and to have what is committed, and nothing that the group has written or says may be unknown
to this program. The members are asked again until that holds, or --wait is over.`

func runPreflight(args []string) error {
	f := flags("preflight [options] [-- --setting=value ...]", preflightText)
	file := f.String("config", "", "the configuration `file` of the nodes that are to be started")
	memory := f.String("container-memory", "", "limits on memory of their containers, parted by commas, as Kubernetes writes them (`2Gi,1Gi`); none: no limit")
	tokens := f.String("http-token-file", os.Getenv("TRIREME_HTTP_TOKEN_FILE"), "the `files` of the nodes' http_token_file, if they have one, parted by commas: "+
		"nodes that were started before it has changed want another one (also TRIREME_HTTP_TOKEN_FILE)")
	ask := func(addr string) (node.Report, error) { return askWithTokens(addr, *tokens) }
	g := groupCheck{ask: ask, now: time.Now, sleep: time.Sleep, say: func(text string) { fmt.Println(text) }}
	peers := f.String("peer-files", "", "`directory` with tls.crt and ca.crt of the nodes that are to be started, where it is not that of their configuration")
	addrs := f.String("http", "", "HTTP `addresses` of the group's members, parted by commas; empty: the group is not asked")
	f.IntVar(&g.running, "running", 0, "how many voting members there are to be now, the first so many of --http; 0: whoever answers tells. Others, up to --members, come with the upgrade, and are not waited for while nobody has their names")
	f.BoolVar(&g.makes, "makes-pods", false, "the group's StatefulSet is gone, and the upgrade makes it anew: members whose pods are gone as well, so that nobody has their names, are not waited for")
	f.BoolVar(&g.grows, "grows-disks", false, "the upgrade makes the members' disks larger before it starts any of them anew: one whose disk is full, and which is behind for it, is no reason to wait")
	f.BoolVar(&g.named, "named", false, "what gives the members their names is there: where nobody has one, no member runs")
	f.IntVar(&g.members, "members", 0, "how many voting members there are to be afterwards; 0: as many as now")
	f.DurationVar(&g.maxLag, "max-lag", 10*time.Second, "a member that is further behind counts as away")
	f.DurationVar(&g.wait, "wait", time.Minute, "how long to wait for the group to be whole")
	f.StringVar(&g.otherwise, "otherwise", "", "`words` that are added to a refusal: how to go on all the same")
	if err := parse(f, args); err != nil {
		return err
	}
	if g.running < 0 || g.members < 0 || g.maxLag < 0 || g.wait < 0 {
		return misuse(f, "numbers and times are not negative")
	}
	limits, err := containerLimits(*memory)
	if err != nil {
		return misuse(f, "--container-memory: %v", err)
	}
	if *file == "" && f.NArg() == 0 && *addrs == "" {
		return misuse(f, "there is nothing to check: give --config, settings or --http")
	}
	if *file != "" || f.NArg() > 0 {
		for _, limit := range limits {
			cfg, err := checkElsewhere(*file, f.Args(), limit)
			if err != nil {
				return notRight("preflight", err)
			}
			g.cluster, g.peerTLS, g.authorities = cfg.String("cluster_name"), node.PeerTLS(cfg), node.PeerAuthorities(cfg)
		}
		fmt.Println("the configuration is right")
	}
	if *peers != "" {
		g.authorities = node.AuthoritiesOf(filepath.Join(*peers, "tls.crt"), filepath.Join(*peers, "ca.crt"))
	}
	for addr := range strings.SplitSeq(*addrs, ",") {
		if addr = strings.TrimSpace(addr); addr != "" {
			g.addrs = append(g.addrs, addr)
		}
	}
	if len(g.addrs) == 0 {
		return nil
	}
	return g.run()
}

// askWithTokens asks a node with one token after the other, until it takes one. A file that is missing is passed over.
func askWithTokens(addr, files string) (r node.Report, err error) {
	asked := false
	for file := range strings.SplitSeq(files, ",") {
		if _, missing := os.Stat(file); file != "" && missing != nil {
			continue
		}
		asked = true
		if r, err = askStatus(addr, file); !errors.Is(err, errWantsToken) {
			return r, err
		}
	}
	if !asked {
		return askStatus(addr, "")
	}
	return r, err
}

// checkElsewhere checks the configuration of a node on another machine, whose container has a limit on memory.
func checkElsewhere(file string, settings []string, limit int64) (*config.Config, error) {
	cfg, err := config.Load(config.Sources{Args: settings, Env: os.Environ(), File: file, Variable: checkVariable, Container: limit})
	if err != nil {
		return nil, err
	}
	return cfg, node.Check(cfg, true)
}

// containerLimits reads --container-memory for config.Sources: 0 is the limit of this process, -1 is none.
func containerLimits(text string) (all []int64, err error) {
	if text == "" {
		return []int64{0}, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "none" {
			all = append(all, -1)
			continue
		}
		n, err := kubernetes.Quantity(part)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// groupCheck asks whether a group may be upgraded.
type groupCheck struct {
	addrs            []string
	cluster          string // cluster_name of the nodes that are to be started; empty: not known
	peerTLS          string // how they talk to others; empty: not known
	authorities      node.Authorities
	running, members int
	named            bool // nobody has a name if no member runs, and by nothing else
	grows            bool // disks become larger before any member is started anew
	makes            bool // pods that are not there come with the upgrade, and by nothing else
	maxLag, wait     time.Duration
	otherwise        string

	ask   func(addr string) (node.Report, error)
	now   func() time.Time
	sleep func(time.Duration)
	say   func(text string)
}

// preflightEvery is how often the members are asked.
const preflightEvery = time.Second

// answer is what one of the addresses said.
type answer struct {
	addr   string
	report node.Report
	err    error
}

// name is the first part of an address' host: the pod's.
func shortName(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	if net.ParseIP(host) != nil {
		return addr
	}
	host, _, _ = strings.Cut(host, ".")
	return host
}

// run waits until the group is whole.
func (g *groupCheck) run() error {
	until, said := g.now().Add(g.wait), ""
	for {
		all := g.askAll()
		if g.running == 0 && !slices.ContainsFunc(all, func(a answer) bool { return !noSuchHost(a.err) }) {
			g.say("there is no group yet, or all of its members are stopped: nobody has a name")
			return nil
		}
		if bad := g.excluded(all); len(bad) > 0 {
			return g.refuse("this program ("+node.Version+") cannot take the place of the one that runs:", bad,
				"Use an image that knows both, or one that is no older than what the group has written.")
		}
		if bad := g.ofOthers(all); len(bad) > 0 {
			return g.refuse("the nodes that are to be started would be of another cluster, and would not start with the data that are there:", bad,
				"The name of a cluster cannot be changed.")
		}
		if bad := g.unheard(all); len(bad) > 0 {
			return g.refuse("the nodes that are to be started would talk to each other otherwise than those that run, and neither would hear the other:", bad,
				"Nothing can be started anew one after the other then. Stop all members for this change: on Kubernetes first helm upgrade with --set hibernate=true, then with hibernate=false and the change.")
		}
		strange := g.strange(all) // also while files come to pods
		bad := g.missing(all)
		if len(bad)+len(strange) == 0 {
			g.say("the group is whole")
			return nil
		}
		if !g.now().Before(until) {
			if len(strange) > 0 {
				return g.refuse("the nodes that are to be started have certificates of another authority, and the first one would be cut off:", strange,
					"Keep the certificates (peerTLS.source, peerTLS.existingSecret), or change the authority in three steps, each of them in all pods before the next: "+
						"both authorities in ca.crt, the new certificate, the new authority alone (docs/operations-kubernetes.md, Certificates). Or hibernate the group for it: "+
						"helm upgrade with --set hibernate=true, then with hibernate=false and the change.")
			}
			if g.nothing(all) {
				g.say("no member runs that has data: there is nothing to protect")
				return nil
			}
			return g.refuse("the group is not whole, and an upgrade stops its members one after the other:", bad, g.advice())
		}
		if text := strings.Join(append(strange, bad...), "; "); text != said {
			g.say("waiting: " + text)
			said = text
		}
		g.sleep(preflightEvery)
	}
}

// refuse tells why not.
func (g *groupCheck) refuse(why string, bad []string, advice string) error {
	text := "trireme preflight: " + why + "\n  " + strings.Join(bad, "\n  ") + "\n" + advice
	if g.otherwise != "" {
		text += "\n" + g.otherwise
	}
	fmt.Fprintln(os.Stderr, text)
	return errFailed
}

func (g *groupCheck) advice() string {
	if g.members > 0 && g.members < g.running {
		return fmt.Sprintf("Repair it before %d of %d members are taken away: a group decides by the majority of all, those that are away included.", g.running-g.members, g.running)
	}
	return "Repair it first: while a member is away the group may lose its majority with the next one that stops."
}

func noSuchHost(err error) bool {
	var e *net.DNSError
	return errors.As(err, &e) && e.IsNotFound
}

// askAll asks all addresses at the same time.
func (g *groupCheck) askAll() []answer {
	all := make([]answer, len(g.addrs))
	var wg sync.WaitGroup
	for i, addr := range g.addrs {
		wg.Go(func() {
			r, err := g.ask(addr)
			all[i] = answer{addr, r, err}
		})
	}
	wg.Wait()
	return all
}

// excluded are the members beside which this program cannot be.
func (g *groupCheck) excluded(all []answer) (bad []string) {
	for i := range all {
		a := &all[i]
		if why := a.report.Excludes(node.Protocol(), node.LogFormat()); a.err == nil && why != "" {
			bad = append(bad, fmt.Sprintf("%s (Trireme %s): %s", shortName(a.addr), a.report.Version, why))
		}
	}
	return bad
}

// ofOthers are the members of a cluster of another name.
func (g *groupCheck) ofOthers(all []answer) (bad []string) {
	for i := range all {
		if a := &all[i]; a.err == nil && g.cluster != "" && a.report.Cluster != "" && a.report.Cluster != g.cluster {
			bad = append(bad, fmt.Sprintf("%s is of the cluster %q, and cluster_name is %q", shortName(a.addr), a.report.Cluster, g.cluster))
		}
	}
	return bad
}

// unheard are the members of a group of several that would not hear the nodes that are to be started.
func (g *groupCheck) unheard(all []answer) (bad []string) {
	several := false
	for i := range all {
		a := &all[i]
		several = several || len(a.report.Members) > 1
		if is := a.report.PeerTLS; a.err == nil && is != "" && g.peerTLS != "" && is != g.peerTLS {
			bad = append(bad, fmt.Sprintf("%s has TLS with its peers %s, and they would have it %s (peer_tls_cert, peer_allow_plaintext; peerTLS.source of the chart)", shortName(a.addr), is, g.peerTLS))
		}
	}
	if !several {
		return nil
	}
	return bad
}

// strange are the members of a group of several that do not take the certificates of the nodes that are to be started, or have others than these take.
func (g *groupCheck) strange(all []answer) (bad []string) {
	if !slices.ContainsFunc(all, func(a answer) bool { return len(a.report.Members) > 1 }) {
		return nil
	}
	for i := range all {
		a := &all[i]
		is := &a.report.PeerAuthorities
		if a.err == nil && !is.Takes(&g.authorities) {
			bad = append(bad, fmt.Sprintf("%s does not trust the authority of the new certificate, %s, but %s", shortName(a.addr),
				strings.Join(g.authorities.Signed, ", "), strings.Join(is.Trusted, ", ")))
		}
		if a.err == nil && !g.authorities.Takes(is) {
			bad = append(bad, fmt.Sprintf("%s has a certificate of the authority %s, and the new ca.crt has %s", shortName(a.addr),
				strings.Join(is.Signed, ", "), strings.Join(g.authorities.Trusted, ", ")))
		}
	}
	return bad
}

// nothing reports whether no member runs that has data: whoever runs has none, and the others have no address. It is asked when all had time to come.
func (g *groupCheck) nothing(all []answer) bool {
	answered := slices.ContainsFunc(all, func(a answer) bool { return a.err == nil })
	return (g.named || answered) && !slices.ContainsFunc(all, func(a answer) bool { return !noSuchHost(a.err) && !(a.err == nil && a.report.Empty) })
}

// missing is what keeps the group from being whole.
func (g *groupCheck) missing(all []answer) (bad []string) {
	var leader *node.Report
	answered := 0
	var made []string // pods that the upgrade makes
	for i := range all {
		a := &all[i]
		switch {
		case g.brings(i) && noSuchHost(a.err):
			made = append(made, shortName(a.addr))
		case a.err != nil && i < g.running:
			bad = append(bad, fmt.Sprintf("%s is away: %v", shortName(a.addr), reason(a.err)))
		case a.err != nil:
		case a.report.Starting:
			answered++
			bad = append(bad, fmt.Sprintf("%s is starting%s", shortName(a.addr), doing(&a.report)))
		default:
			answered++
			if r := &a.report; r.Status.Writable && (leader == nil || r.Status.Term > leader.Status.Term) {
				leader = r
			}
		}
	}
	if answered == 0 {
		return append(bad, "no member answers; if members run, look whether a NetworkPolicy keeps this pod from their HTTP port")
	}
	if leader == nil {
		voters := votersKnown(all)
		few := g.makes || 2*answered <= voters // who answers can elect no leader without the pods that come
		if few && len(made) > 0 && (voters == 0 || 2*(answered+len(made)) > voters) {
			return bad
		}
		return append(bad, "no member takes writes"+g.tooFew(voters))
	}
	return append(bad, g.voters(leader, bad, made)...)
}

// brings reports whether the pod of the address i is there by nothing but the upgrade: its set is gone, or has fewer pods, as after `kubectl scale`.
func (g *groupCheck) brings(i int) bool {
	if g.members == 0 {
		return g.makes
	}
	return i < g.members && (g.makes || g.running > 0 && i >= g.running)
}

// tooFew tells what to do if there are no majority of the voting members' pods, nor would be.
func (g *groupCheck) tooFew(voters int) string {
	if g.running == 0 || 2*max(g.running, g.members) > voters {
		return ""
	}
	set := strings.TrimSuffix(shortName(g.addrs[0]), "-0")
	return fmt.Sprintf(": of %d voting members %d have pods, which are no majority. Have as many pods as members: kubectl scale statefulset/%s --replicas=%d, or replicaCount=%d", voters, g.running, set, voters, voters)
}

// votersKnown is how many voting members those that answer know of.
func votersKnown(all []answer) (most int) {
	for i := range all {
		n := 0
		for _, m := range all[i].report.Members {
			if !m.Learner {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// voters is what the leader knows of members that vote, but for those that are told of already, or whose pods are to be made.
func (g *groupCheck) voters(leader *node.Report, told, made []string) (bad []string) {
	voters := 0
	for _, m := range leader.Members {
		if m.Learner {
			continue
		}
		voters++
		who := shortName(m.Addr)
		if slices.Contains(made, who) || slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(s, who+" ") }) {
			continue
		}
		switch lag := m.Status.Time; {
		case m.State != "ONLINE":
			why := ""
			if m.Status.Error != "" {
				why = ": " + m.Status.Error
			}
			bad = append(bad, fmt.Sprintf("%s, member %d, is %s%s", who, m.ID, m.State, why))
		case g.grows && m.Status.DiskFull && m.Status.DiskStalled == 0 && !m.Status.ReadsFail && m.Status.Undelivered == 0:
		case m.Status.Trouble() != "":
			bad = append(bad, fmt.Sprintf("%s, member %d, %s", who, m.ID, m.Status.Trouble()))
		case m.Status.Writable:
		case lag < 0:
			bad = append(bad, fmt.Sprintf("%s, member %d, does not know yet how far it is behind", who, m.ID))
		case lag > g.maxLag:
			bad = append(bad, fmt.Sprintf("%s, member %d, is %v behind", who, m.ID, lag.Round(time.Millisecond)))
		}
	}
	switch {
	case voters < g.running:
		bad = append(bad, fmt.Sprintf("of %d members %d vote: the others have not joined yet", g.running, voters))
	case len(bad) > 0 && voters > g.running && g.running > 0:
		bad = append(bad, fmt.Sprintf("%d members vote, and there are %d pods: whoever is gone for good has to be taken out by `trireme admin members remove`", voters, g.running))
	}
	return bad
}

// reason is an error without the call's address.
func reason(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
