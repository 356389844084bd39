package main

import (
	"io/fs"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/server/config"
)

// machine is what of the system decides on memory; tests have another.
type machine struct {
	root   fs.FS
	getenv func(string) string
	// limit sets the soft limit of Go's memory and returns the one before; negative: it
	// only returns it.
	limit func(int64) int64
}

func thisMachine() machine { return machine{os.DirFS("/"), os.Getenv, debug.SetMemoryLimit} }

// limitMemory sets the soft limit of Go's memory, so that garbage is collected before the
// system ends the process. Error: the buffer pool does not fit.
func limitMemory(cfg *config.Config, m machine, log *slog.Logger) error {
	plan, err := cfg.Memory(m.root)
	if err != nil {
		return err
	}
	origin := plan.Origin
	switch {
	case m.getenv("GOMEMLIMIT") != "":
		origin = "GOMEMLIMIT"
	case plan.Limit > 0:
		m.limit(plan.Heap)
	}
	heap := "none"
	if n := m.limit(-1); n != math.MaxInt64 {
		heap = mebibytes(n)
	}
	limit := "none"
	if plan.Limit > 0 {
		limit = mebibytes(plan.Limit)
	}
	log.Info("memory", "limit", limit, "go_limit", heap, "from", origin, "buffer_pool", mebibytes(cfg.Int("innodb_buffer_pool_size")))
	if plan.Tight {
		log.Warn("the buffer pool leaves little memory for everything else: the system may end the process; lower innodb_buffer_pool_size or raise the limit",
			"limit", limit, "from", plan.Origin)
	}
	return nil
}

func mebibytes(n int64) string { return strconv.FormatInt(n>>20, 10) + "M" }

// shareMemory is the argument by which each of a number of nodes on this machine takes its
// part of the container; none, if the nodes are told otherwise or there is no limit.
func shareMemory(m machine, nodes int, given []string) []string {
	if m.getenv("GOMEMLIMIT") != "" || m.getenv("TRIREME_MEMORY_LIMIT") != "" {
		return nil
	}
	for _, a := range given {
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if strings.EqualFold(strings.ReplaceAll(name, "-", "_"), "memory_limit") {
			return nil
		}
	}
	limit, _ := config.ContainerMemory(m.root)
	if limit == 0 {
		return nil
	}
	return []string{"--memory-limit=" + strconv.FormatInt(limit/int64(nodes), 10)}
}
