package node

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// alikeSettings are those of the configuration, beside the global variables, that all voters
// should have alike: they decide what one does when it comes to lead. What the machines may
// differ in, as sizes of memory, is none of them.
var alikeSettings = []string{"cluster_name", "heartbeat_interval", "election_ticks", "strong_read_lease", "binlog_row_image", "max_binlog_cache_size",
	"require_secure_transport", "innodb_lock_wait_timeout", "innodb_flush_method"}

// fingerprint is a number made of the settings that all voters should have alike. 48 bits of
// it are exact in the floating-point numbers of metrics.
func (n *Node) fingerprint() uint64 {
	h := sha256.New()
	for _, g := range n.sessions.Globals() {
		if g.Changeable && g.Name != "temptable_max_ram" { // by default a part of the machine's memory
			fmt.Fprintf(h, "%q=%q\n", g.Name, g.Value)
		}
	}
	for _, name := range alikeSettings {
		fmt.Fprintf(h, "%q=%q\n", name, n.cfg.String(name))
	}
	return binary.BigEndian.Uint64(h.Sum(nil)) >> 16
}
