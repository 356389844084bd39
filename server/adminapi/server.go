package adminapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sql/priv"
	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/server/config"
)

// Caller is who makes a call, and has proved it.
type Caller struct {
	User, Host string // as the client named itself, and where it comes from
	// AccountUser and AccountHost are the account, by whose privileges the call works.
	AccountUser, AccountHost string
	Address                  string // of the client, with its port
}

func (c *Caller) id() priv.ID { return priv.NewID(c.AccountUser, c.AccountHost) }

// Member is what a member says of itself, beside how it stands in the group.
type Member struct {
	MySQL, ReadOnly, HTTP, GRPC string // addresses
	Version                     string
	DiskTotal, DiskFree         uint64 // bytes
	Draining                    bool
	Connections                 int
	Uptime                      time.Duration
}

// Options configure a server. All but Log and Audit are required.
type Options struct {
	Group    *group.Node
	Sessions *session.Manager
	Config   *config.Config
	Program  string // with its version, for backups
	// Authenticate finds out who makes a call. Errors: *sqlerr.Error of a login.
	Authenticate func(ctx context.Context) (Caller, error)
	// Member asks a member, which may be this node, about itself.
	Member func(ctx context.Context, id uint64) (Member, error)
	// Drain begins or ends draining the node, and says whether another one leads and how
	// many clients are connected.
	Drain func(undo bool) (handedOver bool, connections int, err error)

	Log   *slog.Logger
	Audit *slog.Logger // of changes; nil: Log
}

// Server is the service of a node. All methods are safe for concurrent use.
type Server struct {
	triremev1.UnimplementedAdminServer
	opt Options

	watchers chan struct{} // a place for each

	mu       sync.Mutex // held while the members are asked
	group    *triremev1.AdminGroup
	gathered time.Time
	members  []group.Member // that it is of

	purging sync.Mutex

	backups chan struct{} // a place for each that is being made
}

// watchersMax is how many Watch calls a node serves at a time.
const watchersMax = 64

// New returns the service.
func New(opt Options) *Server {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Audit == nil {
		opt.Audit = opt.Log
	}
	return &Server{opt: opt, watchers: make(chan struct{}, watchersMax), backups: make(chan struct{}, 1)}
}

// Register makes a gRPC server offer the service. Calls with one request and one answer are
// streams to gRPC, which would otherwise read a request of any caller before it is known who he
// is.
func (s *Server) Register(g *grpc.Server) {
	d := triremev1.Admin_ServiceDesc
	streams := d.Streams
	d.Methods, d.Streams = nil, nil
	for _, m := range triremev1.Admin_ServiceDesc.Methods {
		d.Streams = append(d.Streams, grpc.StreamDesc{StreamName: m.MethodName, Handler: s.known(func(srv any, st grpc.ServerStream) error {
			out, err := m.Handler(srv, st.Context(), st.RecvMsg, nil)
			if err != nil {
				return err
			}
			return st.SendMsg(out)
		})})
	}
	for _, m := range streams {
		m.Handler = s.known(m.Handler)
		d.Streams = append(d.Streams, m)
	}
	g.RegisterService(&d, s)
}

// known lets a call in whose caller has proved who he is.
func (s *Server) known(h grpc.StreamHandler) grpc.StreamHandler {
	return func(srv any, st grpc.ServerStream) error {
		c, err := s.opt.Authenticate(st.Context())
		if err != nil {
			f := s.failure(st.Context(), err)
			method, _ := grpc.MethodFromServerStream(st)
			// Who does not even name a user writes no lines; who guesses is slowed down.
			if !changes[path.Base(method)] || c.User == "" {
				return f.Err()
			}
			s.opt.Audit.LogAttrs(st.Context(), slog.LevelWarn, "admin", slog.Group("audit", "account", "", "user", c.User, "address", c.Address,
				"call", path.Base(method), "arguments", json.RawMessage("{}"), "outcome", f.text))
			return f.Err()
		}
		return h(srv, &admitted{st, As(st.Context(), c)})
	}
}

// admitted is a stream whose context tells who calls.
type admitted struct {
	grpc.ServerStream
	ctx context.Context
}

func (a *admitted) Context() context.Context { return a.ctx }

type callerKey struct{}

// As returns the context of a call of a caller whom another door has let in: for who calls the
// service in this process.
func As(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, &c)
}

// right is what a call needs: one of the privileges.
type right struct {
	call    string
	any     priv.Mask // static ones
	dynamic []string
	change  bool // it goes to the audit log
}

var (
	rightStatus       = right{call: "Status", any: priv.Process | priv.ReplicationClient}
	rightWatch        = right{call: "Watch", any: priv.Process | priv.ReplicationClient}
	rightAdd          = right{"AddMember", priv.Super, groupAdmin, true}
	rightPromote      = right{"PromoteMember", priv.Super, groupAdmin, true}
	rightRemove       = right{"RemoveMember", priv.Super, groupAdmin, true}
	rightReplace      = right{"ReplaceMember", priv.Super, groupAdmin, true}
	rightTransfer     = right{"Transfer", priv.Super, groupAdmin, true}
	rightDrain        = right{"Drain", priv.Super, groupAdmin, true}
	rightSettings     = right{call: "ListSettings", any: priv.Process | priv.ReplicationClient, dynamic: []string{"SYSTEM_VARIABLES_ADMIN"}}
	rightSet          = right{"SetSetting", priv.Super, []string{"SYSTEM_VARIABLES_ADMIN"}, true}
	rightSessions     = right{call: "ListSessions", any: priv.Process}
	rightKill         = right{"KillSession", priv.Super, []string{"CONNECTION_ADMIN"}, true}
	rightTransactions = right{call: "ListTransactions", any: priv.Process}
	rightLarge        = right{call: "ListLargeTransactions", any: priv.Process}
	rightLockWaits    = right{call: "ListLockWaits", any: priv.Process}
	rightStatements   = right{call: "ListStatements", any: priv.Process}
	rightTables       = right{call: "ListTables", any: priv.Process}
	rightBinlogs      = right{call: "ListBinlogs", any: priv.Super | priv.ReplicationClient, dynamic: []string{"BINLOG_ADMIN"}}
	rightPurge        = right{"PurgeBinlogs", priv.Super, []string{"BINLOG_ADMIN"}, true}
	rightBackup       = right{"Backup", priv.Super, []string{"BACKUP_ADMIN"}, true}
	rightReport       = right{"ReportBackup", priv.Super, []string{"BACKUP_ADMIN"}, true}
)

// changes are the calls that go to the audit log.
var changes = func() map[string]bool {
	m := map[string]bool{}
	for _, r := range []right{rightAdd, rightPromote, rightRemove, rightReplace, rightTransfer, rightDrain, rightSet, rightKill, rightPurge, rightBackup, rightReport} {
		m[r.call] = r.change
	}
	return m
}()

var groupAdmin = []string{"GROUP_REPLICATION_ADMIN"}

// serve answers a call of Register's: whether the caller may, what comes of it, and the line of
// the audit log.
func serve[R any](ctx context.Context, s *Server, r right, req proto.Message, fn func(c *Caller) (R, error)) (R, error) {
	var none, out R
	c := ctx.Value(callerKey{}).(*Caller)
	err := s.opt.Sessions.Needs(c.id(), r.any, r.dynamic...)
	if err == nil {
		out, err = fn(c)
	}
	if err != nil {
		f := s.failure(ctx, err)
		s.audit(ctx, r, c, req, f.text)
		return none, f.Err()
	}
	s.audit(ctx, r, c, req, "done")
	return out, nil
}

// auditMax is how long the arguments of a line of the audit log are at most: longer than those of any request that makes sense. Who may do
// nothing can send far more.
const auditMax = settingMax + 4<<10

// audit writes the line of a change.
func (s *Server) audit(ctx context.Context, r right, c *Caller, req proto.Message, outcome string) {
	if !r.change {
		return
	}
	var args []byte
	var err error
	if size := proto.Size(req); size > auditMax {
		args = fmt.Appendf(nil, `{"bytes":%d}`, size)
	} else if args, err = protojson.Marshal(req); err != nil {
		args = []byte("{}") // no request of the contract
	}
	if set, ok := req.(*triremev1.AdminSetSettingRequest); ok && secret(set.GetName()) {
		args, _ = json.Marshal(map[string]string{"name": set.GetName(), "value": hidden})
	}
	s.opt.Audit.LogAttrs(ctx, slog.LevelInfo, "admin", slog.Group("audit", "account", c.id().Text(), "user", c.User, "address", c.Address,
		"call", r.call, "arguments", json.RawMessage(args), "outcome", outcome))
}

// limit is how many a list gives.
func limit(asked uint32, usual, most int) (int, error) {
	switch {
	case asked == 0:
		return usual, nil
	case int64(asked) > int64(most):
		return 0, badArgument("limit is %d: the most is %d", asked, most)
	}
	return int(asked), nil
}
