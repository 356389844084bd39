package group

import (
	"fmt"
	"maps"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/replication/commit"
)

// Settings of the group hold for all members: they are changed by an entry of the log
// and kept in the catalogue's replicated area. A node's options are what holds as long
// as nobody has changed them.

// setting is one of them. All are whole numbers.
type setting struct {
	name        string
	least, most int64
	option      func(*Options) int64
	set         func(*core, int64)
}

var settings = []setting{
	{"binlog_expire_logs_seconds", 1, 1 << 32, func(o *Options) int64 { return int64(o.LogExpire / time.Second) },
		func(c *core, v int64) { c.limits.logExpire.Store(v * int64(time.Second)) }},
	{"binlog_keep_size", 1 << 16, 1 << 50, func(o *Options) int64 { return o.LogKeep },
		func(c *core, v int64) { c.limits.logKeep.Store(v) }},
	{"binlog_large_commit_threshold", 1, 1 << 40, func(o *Options) int64 { return o.LargeThreshold },
		func(c *core, v int64) { c.limits.largeThreshold.Store(v) }},
	{"binlog_transaction_compression", 0, 1, func(o *Options) int64 {
		if o.Commit.Compression.Off {
			return 0
		}
		return 1
	}, func(c *core, v int64) {
		c.limits.compression.Off = v == 0
		c.limits.plainBodies.Store(v == 0)
		c.pipeline.SetCompression(c.limits.compression)
	}},
	{"binlog_transaction_compression_level_zstd", 1, 22, func(o *Options) int64 { return int64(max(o.Commit.Compression.Level, 1)) },
		func(c *core, v int64) {
			c.limits.compression.Level = int(v)
			c.pipeline.SetCompression(c.limits.compression)
		}},
	{"commit_token_life_seconds", 60, 1 << 32, func(o *Options) int64 { return int64(o.TokenLife / time.Second) },
		func(c *core, v int64) { c.tokens.SetLife(time.Duration(v) * time.Second) }},
	{"max_binlog_size", 4096, 1 << 40, func(o *Options) int64 { return o.LogFileSize },
		func(c *core, v int64) { c.limits.logFileSize.Store(v) }},
}

func findSetting(name string) *setting {
	for i := range settings {
		if settings[i].name == name {
			return &settings[i]
		}
	}
	return nil
}

// limits are the settings in force that no part of the node keeps.
type limits struct {
	logFileSize, logKeep, logExpire, largeThreshold atomic.Int64

	compression commit.Compression // of the applying task
	plainBodies atomic.Bool        // compression.Off, for sessions

	mu sync.Mutex
	// changed are the settings that the catalogue has: those that were changed by an entry.
	// They are kept here too, since they lie there among all the commit tokens.
	changed map[string]int64
}

// Setting is a setting of the group.
type Setting struct {
	Name        string
	Value       int64
	Least, Most int64
	Changed     bool // by an entry of the log; else it is the node's option
}

const settingPrefix = "group/setting/"

// loadSettings puts the settings in force as the catalogue has them.
func (c *core) loadSettings() error {
	c.limits.compression = c.opt.Commit.Compression
	c.limits.plainBodies.Store(c.opt.Commit.Compression.Off)
	c.limits.logFileSize.Store(c.opt.LogFileSize)
	c.limits.largeThreshold.Store(c.opt.LargeThreshold)
	c.limits.logKeep.Store(c.opt.LogKeep)
	c.limits.logExpire.Store(int64(c.opt.LogExpire))
	changed, err := c.storedSettings()
	for i := range settings {
		if v, ok := changed[settings[i].name]; ok {
			settings[i].set(c, v)
		}
	}
	c.limits.changed = changed
	for name, v := range changed {
		c.note(name, v)
	}
	return err
}

// changedSettings returns the settings that were changed by an entry of the log.
func (c *core) changedSettings() map[string]int64 {
	c.limits.mu.Lock()
	defer c.limits.mu.Unlock()
	return maps.Clone(c.limits.changed)
}

func (c *core) storedSettings() (map[string]int64, error) {
	out := map[string]int64{}
	err := c.engine.Catalog.EachState(nil, dict.Replicated, func(key, value []byte) error {
		name, ok := strings.CutPrefix(string(key), settingPrefix)
		if !ok {
			return nil
		}
		v, err := strconv.ParseInt(string(value), 10, 64)
		out[name] = v
		return err
	})
	return out, err
}

// Settings returns the settings of the group in the order of their names.
func (n *Node) Settings() ([]Setting, error) {
	c, err := n.running()
	if err != nil {
		return nil, err
	}
	changed := c.changedSettings()
	var out []Setting
	for _, s := range settings {
		v, ok := changed[s.name]
		if !ok {
			v = s.option(c.opt)
		}
		out = append(out, Setting{Name: s.name, Value: v, Least: s.least, Most: s.most, Changed: ok})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// Set changes a setting of the group, on the leader. It returns when the change is in
// force here; elsewhere it is when the entry is applied.
func (n *Node) Set(name string, value int64) error {
	c, err := n.running()
	if err != nil {
		return err
	}
	s := findSetting(name)
	if s == nil {
		return fmt.Errorf("group: there is no setting %q", name)
	}
	if value < s.least || value > s.most {
		return fmt.Errorf("group: %s cannot be %d; it must be %d to %d", name, value, s.least, s.most)
	}
	return c.logNumber(name, value)
}

// logNumber logs a number that the group keeps under a name, on the leader, and waits until it is applied here.
func (c *core) logNumber(name string, value int64) error {
	done := c.env.NewParker()
	var at trx.Position
	var proposed error
	var answered atomic.Bool
	c.pipeline.Mark(entry.Settings, numberBody(name, value), func(p trx.Position, err error) {
		at, proposed = p, err
		answered.Store(true)
		done.Unpark()
	})
	for !answered.Load() {
		done.Park()
	}
	if proposed != nil {
		return proposed
	}
	if err := c.waitApplied(at.Index, 0, waiting{deadline: c.env.Monotonic() + c.opt.ReadTimeout}); err != nil {
		return fmt.Errorf("%w: %w", txn.ErrOutcomeUnknown, err)
	}
	if term, err := c.binlog.Term(at.Index); err != nil || term != at.Term {
		return ErrNotLeader // another leader's entry is there
	}
	return nil
}

// numberBody is the body of an entry that keeps a number under a name.
func numberBody(name string, value int64) []byte {
	return []byte(name + "=" + strconv.FormatInt(value, 10))
}

// note takes a number that the group keeps and that is no setting, if it is one that this version knows.
func (c *core) note(name string, value int64) {
	if name == tokenFloor {
		c.tokens.SetFloor(value)
		return
	}
	c.backups.note(name, value)
}

// storeSetting applies an entry that changes a setting. One that a newer version
// knows and this one does not is kept all the same: all members have the same.
func (c *core) storeSetting(body []byte) (*trx.Trx, error) {
	name, text, ok := strings.Cut(string(body), "=")
	value, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || len(name)+len(settingPrefix) > dict.MaxStateKey {
		return nil, fmt.Errorf("group: malformed change of a setting: %q", body)
	}
	t, err := c.putState(dict.Replicated, settingPrefix+name, []byte(text))
	if err == nil {
		if s := findSetting(name); s != nil {
			s.set(c, value)
		}
		c.limits.mu.Lock()
		c.limits.changed[name] = value
		c.limits.mu.Unlock()
		c.note(name, value)
	}
	return t, err
}
