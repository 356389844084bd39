package session

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// digestText is how long the text of a digest may be: performance_schema_max_digest_length.
const digestText = 1024

// digests counts statements by schema and digest. It is bounded: once there are as many as
// performance_schema_digests_size says, others count as one without a name, and so do texts
// that are no statements, in which a secret might stand anywhere.
type digests struct {
	max  int
	life atomic.Uint64 // rises when all is forgotten
	rest digest

	mu    sync.RWMutex
	byKey map[string]*digest
}

// digest is statements that differ in their values only, in a schema.
type digest struct {
	schema, text, id string
	life             uint64
	parts            [4]digestPart
}

// digestPart has a part of a digest's counts. Sessions take one that is free: many run the
// same statement at once.
type digestPart struct {
	mu sync.Mutex
	n  DigestCounts
	_  [24]byte // to its own cache lines
}

// StatementCounts is what is counted of statements.
type StatementCounts struct {
	Count, Errors, Warnings, Scans    uint64
	RowsAffected, RowsSent, RowsRead  uint64
	TotalTime, LeastTime, LongestTime time.Duration
}

// ended counts a statement that has ended.
func (n *StatementCounts) ended(took time.Duration, m *meter, sent, examined uint64, failed bool) {
	if n.Count++; n.Count == 1 {
		n.LeastTime = took
	}
	if failed {
		n.Errors++
	}
	if m.ran.hasScan() {
		n.Scans++
	}
	n.Warnings += uint64(m.out.Warnings)
	n.RowsAffected += m.out.AffectedRows
	n.RowsSent += sent
	n.RowsRead += examined
	n.TotalTime += took
	n.LeastTime, n.LongestTime = min(n.LeastTime, took), max(n.LongestTime, took)
}

// add adds the counts of other statements.
func (n *StatementCounts) add(o *StatementCounts) {
	switch {
	case o.Count == 0:
		return
	case n.Count == 0:
		*n = *o
		return
	}
	n.Count, n.Errors, n.Warnings, n.Scans = n.Count+o.Count, n.Errors+o.Errors, n.Warnings+o.Warnings, n.Scans+o.Scans
	n.RowsAffected, n.RowsSent, n.RowsRead = n.RowsAffected+o.RowsAffected, n.RowsSent+o.RowsSent, n.RowsRead+o.RowsRead
	n.TotalTime += o.TotalTime
	n.LeastTime, n.LongestTime = min(n.LeastTime, o.LeastTime), max(n.LongestTime, o.LongestTime)
}

// DigestCounts is what is known of statements.
type DigestCounts struct {
	StatementCounts
	FirstSeen, LastSeen types.Timestamp
}

// StatementDigest tells of statements that differ in their values only.
type StatementDigest struct {
	Schema string // the current one; empty: none
	ID     string // SHA-256 of the text; empty: statements that have no place of their own
	Text   string
	DigestCounts
}

// meter is what a session measures of the statement that runs.
type meter struct {
	start    time.Duration
	mode     ast.Mode // in which the text was read: a statement may change the session's
	text     string
	kind     statementKind
	plan     *compiled // by which it runs; nil: none that is kept
	ran      *compiled // that was executed, kept or not; nil: none
	prepared *Prepared
	out      Outcome
	examined uint64        // rows read, but those of the operators that run now
	tree     ast.Statement // nil: none was read
	// seesAudit is set when it asks for a variable of the audit.
	seesAudit bool
	// filter is the audit's when it began.
	filter *auditFilter
	// killed is the session that KILL means; empty: none.
	killed  string
	unknown bool      // it is one that is not built
	source  *Prepared // whose text is told by the audit: of EXECUTE, and of what could not be prepared; nil: its own
	buf     []byte
}

// begin prepares for a statement.
func (m *meter) begin(text string) {
	m.text, m.kind, m.plan, m.ran, m.prepared, m.out, m.examined, m.tree, m.seesAudit = text, comOther, nil, nil, nil, Outcome{}, 0, nil, false
	m.unknown, m.source, m.killed = false, nil, ""
}

// record counts a statement that has ended.
func (s *Session) record(now time.Duration, err error) {
	m := &s.meter
	took := now - m.start
	s.m.statements.observe(s.id, took)
	s.m.kinds.add(s.id, m.kind)
	if m.prepared != nil {
		s.m.kinds.add(s.id, comStmtExecute)
	}
	if err != nil {
		s.m.failed.Add(1)
		s.m.errors.add(err, types.Timestamp(s.x.Now.UnixMicro()))
	}
	sent, examined, text := s.sentRows(), s.examined(), ""
	if d := &s.m.digests; d.max > 0 {
		of := &d.rest
		if errorNumber(err) != sqlerr.ParseError {
			of = s.digestOf(d)
		}
		of.add(s.id, took, m, sent, examined, types.Timestamp(s.x.Now.UnixMicro()), err != nil)
		text = of.text
	}
	if slow := took >= s.opt.slow; examined >= s.opt.slowRows && (slow || s.m.logScans.Load()) {
		if slow {
			s.m.slow.Add(1)
		}
		if scans := s.m.logScans.Load() && m.ran.scansAll(); slow || scans {
			s.slow(took, text, sent, examined, scans, err)
		}
	}
	s.audit(took, text, sent, err)
	if s.span != nil {
		s.endSpan(now, text, sent, examined, err)
	}
	m.begin("")
	m.start = now
}

// sentRows is how many rows the statement has sent.
func (s *Session) sentRows() uint64 {
	if s.out.sent {
		return s.out.rows
	}
	return 0
}

// examined is how many rows it has read.
func (s *Session) examined() uint64 { return s.meter.examined + s.work.run.Examined }

// digested is the text of the digest of the statement that has ended, empty for what is none.
func (m *meter) digested(err error) string {
	if errorNumber(err) == sqlerr.ParseError {
		return ""
	}
	return string(ast.AppendDigest(nil, m.text, m.mode, digestText))
}

func (d *digest) add(session uint64, took time.Duration, m *meter, sent, examined uint64, at types.Timestamp, failed bool) {
	p := d.lockPart(session)
	defer p.mu.Unlock()
	n := &p.n
	if n.ended(took, m, sent, examined, failed); n.Count == 1 {
		n.FirstSeen = at
	}
	n.LastSeen = max(n.LastSeen, at)
}

// lockPart locks a part that is free, or else the session's.
func (d *digest) lockPart(session uint64) *digestPart {
	own := session % uint64(len(d.parts))
	for i := range uint64(len(d.parts)) {
		if p := &d.parts[(own+i)%uint64(len(d.parts))]; p.mu.TryLock() {
			return p
		}
	}
	d.parts[own].mu.Lock()
	return &d.parts[own]
}

// counts adds up the parts, and begins anew if it is told to.
func (d *digest) counts(forget bool) DigestCounts {
	var sum DigestCounts
	for i := range d.parts {
		p := &d.parts[i]
		p.mu.Lock()
		sum.add(&p.n)
		if forget {
			p.n = DigestCounts{}
		}
		p.mu.Unlock()
	}
	return sum
}

// add adds the counts of other statements.
func (n *DigestCounts) add(o *DigestCounts) {
	switch {
	case o.Count == 0:
		return
	case n.Count == 0:
		*n = *o
		return
	}
	n.StatementCounts.add(&o.StatementCounts)
	n.FirstSeen, n.LastSeen = min(n.FirstSeen, o.FirstSeen), max(n.LastSeen, o.LastSeen)
}

// digestOf finds where the statement is counted. One whose plan is kept knows it.
func (s *Session) digestOf(t *digests) *digest {
	m := &s.meter
	life := t.life.Load()
	if m.plan != nil {
		if d := m.plan.digest.Load(); d != nil && d.life == life && d.schema == s.schema {
			return d
		}
	} else if m.prepared != nil {
		if d := m.prepared.digest; d != nil && d.life == life && d.schema == s.schema {
			return d
		}
	}
	m.buf = append(append(m.buf[:0], s.schema...), 0)
	m.buf = ast.AppendDigest(m.buf, m.text, m.mode, digestText)
	d := t.find(m.buf, len(s.schema))
	switch {
	case d == &t.rest:
	case m.plan != nil:
		m.plan.digest.Store(d)
	case m.prepared != nil:
		m.prepared.digest = d
	}
	return d
}

// find returns the digest of a key: a schema with so many bytes, a zero byte and a text.
func (t *digests) find(key []byte, schema int) *digest {
	t.mu.RLock()
	d, full := t.byKey[string(key)], len(t.byKey) >= t.max
	t.mu.RUnlock()
	switch {
	case d != nil:
		return d
	case full || len(key) == schema+1:
		return &t.rest
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if d := t.byKey[string(key)]; d != nil {
		return d
	}
	if len(t.byKey) >= t.max {
		return &t.rest
	}
	sum := sha256.Sum256(key[schema+1:])
	d = &digest{schema: string(key[:schema]), text: string(key[schema+1:]), id: hex.EncodeToString(sum[:]), life: t.life.Load()}
	if t.byKey == nil {
		t.byKey = map[string]*digest{}
	}
	t.byKey[string(key)] = d
	return d
}

// forget begins anew.
func (t *digests) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.life.Add(1)
	t.byKey = nil
	t.rest.counts(true)
}

// Statements returns what is known of statements by their digests, those first that took the
// longest together.
func (m *Manager) Statements() []StatementDigest {
	t := &m.digests
	t.mu.RLock()
	all := make([]*digest, 0, len(t.byKey)+1)
	all = append(all, &t.rest)
	for _, d := range t.byKey {
		all = append(all, d)
	}
	t.mu.RUnlock()
	list := make([]StatementDigest, 0, len(all))
	for _, d := range all {
		if one := (StatementDigest{d.schema, d.id, d.text, d.counts(false)}); one.Count > 0 {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b StatementDigest) int {
		return cmp.Or(cmp.Compare(b.TotalTime, a.TotalTime), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Schema, b.Schema))
	})
	return list
}

// latencyLimits are the limits of histograms.
var latencyLimits = [...]time.Duration{100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond,
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second}

// latencies is a histogram. Sessions with different numbers are seldom in each other's way.
type latencies [8]struct {
	counts [len(latencyLimits) + 1]atomic.Uint64
	sum    atomic.Int64
	_      [48]byte // to its own cache lines
}

func (l *latencies) observe(session uint64, took time.Duration) {
	i := 0
	for i < len(latencyLimits) && took > latencyLimits[i] {
		i++
	}
	of := &l[session%uint64(len(l))]
	of.counts[i].Add(1)
	of.sum.Add(int64(took))
}

// Latencies is how long something took: Counts[i] of them at most Limits[i] and longer than the
// limit before, the last longer than all.
type Latencies struct {
	Limits []time.Duration
	Counts []uint64
	Sum    time.Duration
}

func (l *latencies) read() Latencies {
	out := Latencies{Limits: latencyLimits[:], Counts: make([]uint64, len(latencyLimits)+1)}
	for i := range l {
		for k := range l[i].counts {
			out.Counts[k] += l[i].counts[k].Load()
		}
		out.Sum += time.Duration(l[i].sum.Load())
	}
	return out
}

// Latencies tells how long statements took, and commits of those that had changed something.
func (m *Manager) Latencies() (statements, commits Latencies) {
	return m.statements.read(), m.commits.read()
}
