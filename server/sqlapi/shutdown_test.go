package sqlapi

import (
	"context"
	"encoding/base64"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/server/auth"
)

// toldAccount is onlyRoot, and says when it was asked.
type toldAccount struct{ asked chan struct{} }

func (a toldAccount) Account(user, host, address string) (auth.Account, bool, error) {
	select {
	case a.asked <- struct{}{}:
	default:
	}
	return onlyRoot{}.Account(user, host, address)
}

// TestShutdownIsTold: a statement that a shutdown has no time for ends with 1053, which says that another member is to be asked, not as if
// somebody had killed it.
func TestShutdownIsTold(t *testing.T) {
	d, _ := newDoor(t)
	w := connect(t, d)
	w.ask(1, opening(&pb.SqlOpen{}))
	w.send(1, text("SELECT SLEEP(600)"))
	var s *sess
	for until := time.Now().Add(patience); s == nil; time.Sleep(time.Millisecond) {
		for _, one := range d.all()[0].all() {
			one.q.Lock()
			if one.current != 0 {
				s = one
			}
			one.q.Unlock()
		}
		if time.Now().After(until) {
			t.Fatal("it does not begin")
		}
	}
	s.end(moved(stoppedText), false) // as Shutdown does first
	s.end(errGone, true)             // and when its time is over
	if e := w.answer().GetError(); e.GetNumber() != 1053 {
		t.Errorf("the statement: %v", e)
	}
	close(w.requests)
}

// TestShutdownWithIdleCalls: callers who send no request, or take no answer, do not keep the node from stopping.
func TestShutdownWithIdleCalls(t *testing.T) {
	const huge = "SELECT REPEAT('x', 1000000)"
	for name, say := range map[string]func(grpc.ClientStream) error{
		"no request": func(grpc.ClientStream) error { return nil },
		"not taken": func(s grpc.ClientStream) error {
			return s.SendMsg(&pb.SqlExecuteRequest{Statement: &pb.SqlStatement{Text: huge}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := toldAccount{make(chan struct{}, 1)}
			a, err := auth.New(auth.Options{Source: source})
			if err != nil {
				t.Fatal(err)
			}
			d, _ := newDoor(t, func(o *Options) { o.Auth = a })
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = d.Serve(l) }()
			c, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("root:")))
			s, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, pb.Sql_Execute_FullMethodName)
			if err == nil {
				err = say(s)
			}
			if err != nil {
				t.Fatal(err)
			}
			<-source.asked // the call counts by now
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			down := make(chan struct{})
			go func() {
				d.Shutdown(ctx)
				close(down)
			}()
			select {
			case <-down:
			case <-time.After(patience / 2):
				t.Error("it does not stop")
				d.grpc.Stop()
				<-down
			}
		})
	}
}
