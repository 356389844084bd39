package group

import (
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/replication/transport"
)

// LogFormat are the versions of the log's format that this program reads and writes:
// for transport.Options.
var LogFormat = transport.Versions{Min: entry.FirstVersion, Max: entry.FileVersion}

// nextVersion is the format version of a file that this node, as the leader, opens behind
// one of version open: the newest that all members know, or open, which they all know
// already. Who is not connected is not known to know more.
func (c *core) nextVersion(open uint8) uint8 {
	version := c.opt.LogFormat.Max
	if uint32(open) >= version {
		return open
	}
	known := map[uint64]uint32{c.opt.ID: version}
	for _, s := range c.transport.Status() {
		if s.Connected {
			known[s.ID] = s.LogFormat // 0 before anything was agreed on
		}
	}
	for _, m := range c.membership.current() {
		version = min(version, known[m.ID])
	}
	return max(open, uint8(version))
}

// requireFormat has nodes refused from now on, and told why, that do not know the format of
// the open file: what they are sent would stop them. A file that may be taken back does not
// count, for the others could not take it back then.
func (c *core) requireFormat() {
	if tail := c.binlog.Tail(); tail.Agreed && tail.Version > c.required {
		c.required = tail.Version
		c.transport.RequireLogFormat(uint32(tail.Version))
	}
}
