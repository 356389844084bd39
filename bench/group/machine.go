package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// machineWatch tells who has used the processors.
type machineWatch struct {
	busy, ours, servers time.Duration
}

// watchMachine begins a watch over a cluster and the machine.
func watchMachine(k *cluster) machineWatch {
	return machineWatch{busy: machineBusy(), ours: allOurs(), servers: k.cpu()}
}

// end returns the CPU time of the cluster's servers, and which share of the
// processors was used by processes that are not this benchmark's.
func (m machineWatch) end(k *cluster, took time.Duration) (servers time.Duration, foreign float64) {
	servers = k.cpu() - m.servers
	others := machineBusy() - m.busy - (allOurs() - m.ours)
	return servers, max(0, others.Seconds()/took.Seconds()/float64(runtime.NumCPU()))
}

// allOurs is the CPU time of this process and of all its servers.
func allOurs() time.Duration {
	sum := ownCPU()
	running.Lock()
	defer running.Unlock()
	for p := range running.list {
		sum += p.cpu()
	}
	return sum
}

// machineBusy is the time that the machine's processors have worked so far, for
// anybody; 0 where the system does not tell.
func machineBusy() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var user, nice, system, idle, iowait, irq, softirq, steal int64
	if _, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal); err != nil {
		return 0
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100
	return time.Duration(user+nice+system+irq+softirq+steal) * tick
}

// memoryGiB is the machine's memory.
func memoryGiB() float64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	var kib float64
	for _, l := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(l, "MemTotal:"); ok {
			_, _ = fmt.Sscan(rest, &kib)
		}
	}
	return kib / (1 << 20)
}
