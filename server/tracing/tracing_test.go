package tracing

import (
	"bytes"
	"crypto/tls"
	"crypto/x509/pkix"
	"hash/maphash"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/triremedb/trireme/e2e/servers/ports"
	"github.com/triremedb/trireme/internal/trace"
	"github.com/triremedb/trireme/server/auth/authtest"
	"github.com/triremedb/trireme/server/tracing/tracingtest"
)

func open(t *testing.T, o Options) *Recorder {
	t.Helper()
	if o.PerSecond == 0 {
		o.PerSecond = 1_000_000
	}
	if o.Queue == 0 {
		o.Queue = 2048
	}
	r, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// parent is what a caller may have said.
var parent, _, _ = trace.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

func record(r *Recorder, n int) {
	for range n {
		c := r.Child(parent)
		r.Record(&trace.Span{Context: c, Parent: parent.Span, Name: "work", Start: time.Now(), End: time.Now()})
	}
}

func count(n int) func([]tracingtest.Span) bool {
	return func(all []tracingtest.Span) bool { return len(all) >= n }
}

// TestSent: spans come as they were recorded, from whom they are.
func TestSent(t *testing.T) {
	c := tracingtest.New(t)
	r := open(t, Options{Endpoint: c.Addr(), Ratio: 1})
	own := r.Begin(parent, "app")
	start := time.Unix(1_800_000_000, 5)
	r.Record(&trace.Span{Context: own, Parent: parent.Span, Kind: trace.Server, Name: "SELECT a.b", Start: start, End: start.Add(time.Second),
		Attributes: []trace.Attribute{{Key: "text", Text: "a\xffb"}, {Key: "number", Number: -7}}, Error: "1062 (23000)"})
	first := r.Begin(trace.Context{}, "app")
	r.Record(&trace.Span{Context: first, Kind: trace.Consumer, Name: "apply", Start: start, End: start})
	r.Start(Node{Group: "group", Member: "17", Version: "1.2"})

	all := c.Await(t, "", count(2))
	s := all[0]
	want := tracingtest.Span{Trace: "0af7651916cd43dd8448eb211c80319c", ID: s.ID, Parent: "b7ad6b7169203331", Name: "SELECT a.b",
		Kind: tracepb.Span_SPAN_KIND_SERVER, Failed: true, Status: "1062 (23000)"}
	if s.Trace != want.Trace || s.Parent != want.Parent || s.Name != want.Name || s.Kind != want.Kind || !s.Failed || s.Status != want.Status ||
		!s.Start.Equal(start) || !s.End.Equal(start.Add(time.Second)) || len(s.ID) != 16 || s.ID == s.Parent {
		t.Errorf("%+v", s)
	}
	if s.Attributes["text"] != "a\ufffdb" || s.Attributes["number"] != "-7" {
		t.Errorf("%v", s.Attributes)
	}
	if s.Resource["service.name"] != "trireme" || s.Resource["service.instance.id"] != "group:17" || s.Resource["service.version"] != "1.2" ||
		s.Resource["trireme.group"] != "group" || s.Resource["trireme.member"] != "17" {
		t.Errorf("%v", s.Resource)
	}
	if f := all[1]; f.Parent != "" || f.Failed || f.Kind != tracepb.Span_SPAN_KIND_CONSUMER || f.Trace == s.Trace {
		t.Errorf("%+v", f)
	}
}

// TestService: the environment names the service.
func TestService(t *testing.T) {
	t.Setenv("OTEL_SERVICE_NAME", "shop-db")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	c := tracingtest.New(t)
	r := open(t, Options{Endpoint: "http://" + c.Addr()})
	r.Start(Node{})
	record(r, 1)
	if of := c.Await(t, "", count(1))[0].Resource; of["service.name"] != "shop-db" || of["deployment.environment.name"] != "test" {
		t.Errorf("%v", of)
	}
}

// TestSampling: callers that have said so are obeyed, of the others as many are traced as the ratio
// says.
func TestSampling(t *testing.T) {
	for _, ratio := range []float64{0, 0.1, 1} {
		r := open(t, Options{Endpoint: "127.0.0.1:1", Ratio: ratio})
		const n = 10000
		begun := 0
		seen := map[trace.Context]bool{}
		for range n {
			if c := r.Begin(trace.Context{}, ""); c.Valid() {
				begun++
				seen[c] = true
			}
			if c := r.Begin(parent, strconv.Itoa(begun)); c.Trace != parent.Trace || c.Span == parent.Span || !c.Valid() {
				t.Fatalf("of a caller's trace: %v", c)
			}
		}
		if least, most := int(ratio*n*0.8), int(ratio*n*1.2); begun < least || begun > most || len(seen) != begun {
			t.Errorf("ratio %v: %d of %d, %d different", ratio, begun, n, len(seen))
		}
	}
}

// TestRate: no more traces begin in a second than the limit, also if callers ask for them.
func TestRate(t *testing.T) {
	r := open(t, Options{Endpoint: "127.0.0.1:1", Ratio: 1, PerSecond: 10})
	var now int64
	r.now = func() int64 { return now }
	other := otherShare(r, "app")
	burst := func() (n int) {
		for i := range 100 {
			p, account := parent, "app"
			if i%2 == 0 {
				p, account = trace.Context{}, other
			}
			if r.Begin(p, account).Valid() {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		later time.Duration
		want  int
	}{{0, 10}, {0, 0}, {100 * time.Millisecond, 1}, {500 * time.Millisecond, 5}, {time.Hour, 10}} {
		now += int64(c.later)
		if n := burst(); n != c.want {
			t.Errorf("after %v: %d traces begin, %d should", c.later, n, c.want)
		}
	}
	if s := r.Stats(); s.Limited != 500-26 {
		t.Errorf("%d were counted as limited", s.Limited)
	}
}

// otherShare is an account with another share than one has.
func otherShare(r *Recorder, account string) string {
	other := "x"
	for maphash.String(r.seed, other)%64 == maphash.String(r.seed, account)%64 {
		other += "x"
	}
	return other
}

// TestRateShared: one that wants all has all that others do not want, and no more.
func TestRateShared(t *testing.T) {
	r := open(t, Options{Endpoint: "127.0.0.1:1", Ratio: 1, PerSecond: 100})
	var now int64
	r.now = func() int64 { return now }
	other := otherShare(r, "greedy")
	for _, c := range []struct{ wants, least int }{{0, 0}, {20, 195}, {50, 480}, {1000, 480}} {
		greedy, others := 0, 0
		for ms := range 10_000 {
			now += int64(time.Millisecond)
			for range 10 {
				if r.Begin(parent, "greedy").Valid() {
					greedy++
				}
			}
			if c.wants > 0 && ms%(1000/c.wants) == 0 && r.Begin(trace.Context{}, other).Valid() {
				others++
			}
		}
		if all := greedy + others; all < 980 || all > 1101 || others < c.least {
			t.Errorf("%d wanted in a second: %d others and %d greedy", c.wants, others, greedy)
		}
	}
}

// TestRateTogether: tasks share the limit.
func TestRateTogether(t *testing.T) {
	r := open(t, Options{Endpoint: "127.0.0.1:1", Ratio: 1, PerSecond: 1000})
	r.now = func() int64 { return 0 }
	var tasks sync.WaitGroup
	begun := make([]int, 8)
	for i := range begun {
		tasks.Go(func() {
			for range 1000 {
				if r.Begin(parent, "app").Valid() {
					begun[i]++
				}
			}
		})
	}
	tasks.Wait()
	all := 0
	for _, n := range begun {
		all += n
	}
	if all != 1000 {
		t.Errorf("%d traces have begun", all)
	}
}

// TestQueue: what finds no place is dropped, and nobody waits.
func TestQueue(t *testing.T) {
	c := tracingtest.New(t)
	r := open(t, Options{Endpoint: c.Addr(), Queue: 64})
	record(r, 100)
	if s := r.Stats(); s.Queued != 64 || s.Full != 36 {
		t.Errorf("%+v", s)
	}
	r.Start(Node{})
	c.Await(t, "", count(64))
	awaitStats(t, r, func(s Stats) bool { return s.Sent == 64 && s.Queued == 0 })
}

func awaitStats(t *testing.T, r *Recorder, enough func(Stats) bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !enough(r.Stats()); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%+v", r.Stats())
		}
	}
}

// TestSlowCollector: one that does not answer costs spans, and Close does not wait for it for long.
func TestSlowCollector(t *testing.T) {
	c := tracingtest.New(t)
	c.Block()
	r := open(t, Options{Endpoint: c.Addr(), Queue: 64})
	r.Start(Node{})
	record(r, 1)
	for until := time.Now().Add(time.Minute); c.Calls() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the collector was not called")
		}
	}
	record(r, 65)
	if s := r.Stats(); s.Queued != 64 || s.Full != 1 {
		t.Errorf("%+v", s)
	}
	closed(t, r)
	if s := r.Stats(); s.Failed != 65 || s.Sent != 0 {
		t.Errorf("%+v", s)
	}
}

// closed ends a recorder, which may not take as long as a call to the collector.
func closed(t *testing.T, r *Recorder) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Close()
	}()
	select {
	case <-done:
	case <-time.After(8 * time.Second): // a call may take ten
		t.Fatal("Close waits for the collector")
	}
}

// TestDeadCollector: the log tells that nobody is there, once.
func TestDeadCollector(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	var log safeBuffer
	r := open(t, Options{Endpoint: addr, Queue: 64, Log: slog.New(slog.NewTextHandler(&log, nil))})
	r.Start(Node{})
	record(r, 3)
	closed(t, r)
	if s := r.Stats(); s.Failed != 3 || s.Sent != 0 {
		t.Errorf("%+v", s)
	}
	for range 5 {
		r.complaints.Handle(net.ErrClosed)
	}
	if text := log.String(); strings.Count(text, "sending traces") != 1 {
		t.Errorf("the log: %s", text)
	}
}

// TestCollectorReturns: one that comes later, or again, gets what is recorded from then on.
func TestCollectorReturns(t *testing.T) {
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	addr := "127.0.0.1:" + strconv.Itoa(port)
	r := open(t, Options{Endpoint: addr})
	r.Start(Node{})
	record(r, 1)
	c := tracingtest.At(t, addr)
	for until := time.Now().Add(time.Minute); len(c.Spans()) == 0; time.Sleep(50 * time.Millisecond) {
		if record(r, 1); time.Now().After(until) {
			t.Fatal("nothing comes")
		}
	}
}

// TestTLS: certificates and headers are those of the environment; a collector that cannot prove who it
// is gets nothing.
func TestTLS(t *testing.T) {
	authority := authtest.NewAuthority(t, "observers")
	server := authority.Issue(pkix.Name{CommonName: "collector"}, nil)
	c := tracingtest.At(t, "127.0.0.1:0", grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{server.Pair(t)}})))
	stranger := open(t, Options{Endpoint: "https://" + c.Addr()})
	stranger.Start(Node{})
	record(stranger, 1)
	closed(t, stranger)
	if s := stranger.Stats(); s.Failed != 1 || c.Calls() != 0 {
		t.Errorf("%+v, %d calls", s, c.Calls())
	}
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", authtest.File(t, filepath.Join(t.TempDir(), "ca.pem"), authority.PEM()))
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization=Bearer%20abc,tenant=shop")
	r := open(t, Options{Endpoint: "https://" + c.Addr()})
	r.Start(Node{})
	record(r, 1)
	c.Await(t, "", count(1))
	if h := c.Headers(); strings.Join(h["authorization"], "") != "Bearer abc" || strings.Join(h["tenant"], "") != "shop" {
		t.Errorf("%v", h)
	}
}

// TestRefusedInPart: spans that a collector refuses of a call are counted, not the others, and the log
// tells why.
func TestRefusedInPart(t *testing.T) {
	c := tracingtest.New(t)
	c.Refuse(2)
	var log safeBuffer
	r := open(t, Options{Endpoint: c.Addr(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	record(r, 10)
	r.Start(Node{})
	r.Close()
	if s := r.Stats(); s.Sent != 8 || s.Failed != 2 || c.Calls() != 1 {
		t.Errorf("%+v, %d calls", s, c.Calls())
	}
	if text := log.String(); !strings.Contains(text, "too old") {
		t.Errorf("the log: %s", text)
	}
}

// TestPlain: http is without TLS, though the environment names an authority.
func TestPlain(t *testing.T) {
	authority := authtest.NewAuthority(t, "others")
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", authtest.File(t, filepath.Join(t.TempDir(), "ca.pem"), authority.PEM()))
	c := tracingtest.New(t)
	r := open(t, Options{Endpoint: "http://" + c.Addr()})
	r.Start(Node{})
	record(r, 1)
	r.Close()
	if s := r.Stats(); s.Sent != 1 {
		t.Errorf("%+v", s)
	}
}

// TestEnvironment: the log tells what of the environment does not count, and no secret.
func TestEnvironment(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.pem")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", missing)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "Bearer secret,authorization=%secret")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "secret")
	var log safeBuffer
	open(t, Options{Endpoint: "https://127.0.0.1:1", Log: slog.New(slog.NewTextHandler(&log, nil))})
	text := log.String()
	for _, want := range []string{missing, "parse headers", "parse duration"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing of %s: %s", want, text)
		}
	}
	if strings.Contains(text, "secret") {
		t.Errorf("a secret: %s", text)
	}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestFlush: Close sends what waits.
func TestFlush(t *testing.T) {
	c := tracingtest.New(t)
	r := open(t, Options{Endpoint: c.Addr(), Queue: 4096})
	r.Start(Node{})
	record(r, 1500)
	r.Close()
	if n := len(c.Spans()); n != 1500 {
		t.Errorf("%d spans have come, of %s", n, strconv.Itoa(1500))
	}
	r.Close() // and once more
}

// TestEndpoint: what may be written, and what may not.
func TestEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"collector:4317": "collector:4317", "http://collector:4317": "collector:4317", "https://collector:4317/": "collector:4317 TLS",
		"[::1]:4317": "[::1]:4317", "127.0.0.1:4317": "127.0.0.1:4317", "http://[::1]:4317": "[::1]:4317",
		"collector": "", "http://collector": "", "https://collector:4317/v1/traces": "", "ftp://collector:21": "", "collector:": "", ":4317": "",
		"http://user:password@collector:4317": "", "collector:99999": "", "http://": "",
	} {
		address, secure, err := parseEndpoint(endpoint)
		if secure {
			address += " TLS"
		}
		if err != nil {
			address = ""
		}
		if address != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q %v", endpoint, address, err)
		}
	}
}
