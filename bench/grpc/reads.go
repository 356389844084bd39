package main

import (
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"

	_ "github.com/go-sql-driver/mysql"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

func dial(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
}

// asRoot adds who calls.
func asRoot(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("root:"+password)))
}

func integer(id int) *pb.SqlValue { return &pb.SqlValue{Kind: &pb.SqlValue_Int{Int: int64(id)}} }

func wrong(id int, have any) error { return fmt.Errorf("row %d reads %v", id, have) }

// checkBatch checks that a batch is the row of the key.
func checkBatch(id int, b *pb.SqlBatch) error {
	if b.GetRows() != 1 || string(b.Columns[0].Bytes) != value(id) {
		return wrong(id, b)
	}
	return nil
}

// executeRequest is a point read as a single statement.
func executeRequest(id int) *pb.SqlExecuteRequest {
	return &pb.SqlExecuteRequest{Schema: schema, Statement: &pb.SqlStatement{Text: pointRead, Params: []*pb.SqlValue{integer(id)}}}
}

// execute compares single statements with a service that does nothing.
func (b *bench) execute() error {
	ctx := asRoot(context.Background())
	conn, err := dial(b.address())
	if err != nil {
		return err
	}
	defer conn.Close()
	api := pb.NewSqlClient(conn)
	one, err := api.Execute(ctx, executeRequest(b.rows))
	if err != nil {
		return err
	}
	asked, answered := proto.Size(executeRequest(b.rows)), proto.Size(one)
	echo, address, err := b.startEcho(answered)
	if err != nil {
		return err
	}
	defer echo.Kill()
	bare, err := dial(address)
	if err != nil {
		return err
	}
	defer bare.Close()
	all := []contender{
		{"Execute", b.node.Process(), func(int) (func(int, *meter) error, func(), error) {
			return func(_ int, m *meter) error {
				return m.repeat(func(id int) error {
					r, err := api.Execute(ctx, executeRequest(id))
					if err != nil {
						return err
					}
					return checkBatch(id, r.Batch)
				})
			}, nil, nil
		}},
		{"a service that only answers", echo, func(int) (func(int, *meter) error, func(), error) {
			request := wrapperspb.Bytes(make([]byte, asked))
			return func(_ int, m *meter) error {
				return m.repeat(func(int) error { return bare.Invoke(ctx, echoMethod, request, new(wrapperspb.BytesValue)) })
			}, nil, nil
		}},
	}
	for _, n := range b.callers {
		samples, err := b.takeTurns(n, all)
		if err != nil {
			return err
		}
		b.report.compare(n, all, samples, 1, executeTarget)
	}
	b.report.note("Execute: a connection for all callers; requests of %d bytes and answers of %d, the same metadata in both.", asked, answered)
	return nil
}

// stream compares point reads on the stream with the MySQL door.
func (b *bench) stream() error {
	p := b.node.Process()
	all := []contender{
		{"the Go SDK", p, b.bySDK},
		{"sessions on a stream", p, func(callers int) (func(int, *meter) error, func(), error) { return b.byStream(callers, 1) }},
		{fmt.Sprintf("the same, %d requests ahead", ahead), p, func(callers int) (func(int, *meter) error, func(), error) { return b.byStream(callers, ahead) }},
		{"the MySQL door", p, b.byMySQL},
	}
	for _, n := range b.callers {
		samples, err := b.takeTurns(n, all)
		if err != nil {
			return err
		}
		target := streamTarget
		if n < manySessions {
			target = 0
		}
		b.report.compare(n, all, samples, len(all)-1, target)
	}
	return nil
}

// bySDK reads as a program does that uses package client.
func (b *bench) bySDK(callers int) (func(int, *meter) error, func(), error) {
	ctx := context.Background()
	db, err := b.open(ctx, callers)
	if err != nil {
		return nil, nil, err
	}
	read := db.Prepare(pointRead)
	return func(_ int, m *meter) error {
		return m.repeat(func(id int) error {
			var c string
			if err := read.QueryRow(ctx, id).Scan(&c); err != nil {
				return err
			}
			if c != value(id) {
				return wrong(id, c)
			}
			return nil
		})
	}, func() { _ = db.Close() }, nil
}

// byMySQL reads by go-sql-driver, a connection for each caller.
func (b *bench) byMySQL(callers int) (call func(int, *meter) error, end func(), err error) {
	ctx := context.Background()
	db, err := sql.Open("mysql", b.node.DSN(schema, nil))
	if err != nil {
		return nil, nil, err
	}
	end = func() { _ = db.Close() }
	reads := make([]*sql.Stmt, callers)
	for i := range reads {
		c, err := db.Conn(ctx)
		if err != nil {
			return nil, end, err
		}
		if reads[i], err = c.PrepareContext(ctx, pointRead); err != nil {
			return nil, end, err
		}
	}
	return func(caller int, m *meter) error {
		return m.repeat(func(id int) error {
			var c string
			if err := reads[caller].QueryRowContext(ctx, id).Scan(&c); err != nil {
				return err
			}
			if c != value(id) {
				return wrong(id, c)
			}
			return nil
		})
	}, end, nil
}
