package contenders

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// profileTurn is how long a CPU profile is.
const profileTurn = 5 * time.Second

// profiler takes CPU profiles of a node, one after the other, for as long as it runs.
type profiler struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	err    error
}

// startProfiler begins to profile a node that serves /debug/pprof/, into files of a directory.
func startProfiler(n *servers.Node, dir string) (*profiler, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &profiler{cancel: cancel}
	p.done.Go(func() {
		url := fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/profile?seconds=%d", n.HTTP, int(profileTurn.Seconds()))
		for ctx.Err() == nil && p.err == nil {
			body, err := fetch(ctx, url)
			if ctx.Err() != nil { // the last one is cut off
				return
			}
			if err == nil {
				name := fmt.Sprintf("cpu-%s.pb.gz", time.Now().Format("20060102T150405"))
				err = os.WriteFile(filepath.Join(dir, name), body, 0o644)
			}
			p.err = err
		}
	})
	return p, nil
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r.SetBasicAuth("root", password)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	if err != nil {
		err = fmt.Errorf("a CPU profile of the server: %w", err)
	}
	return body, err
}

// stop ends the profiling.
func (p *profiler) stop() error {
	p.cancel()
	p.done.Wait()
	return p.err
}
