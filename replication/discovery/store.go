package discovery

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// store is what the registry needs of etcd.
type store interface {
	// list returns what stands under a prefix, all at one moment, sorted by key.
	list(ctx context.Context, prefix string) ([]pair, error)
	// swap writes a key if it is still at revision rev (0: does not exist), and reports
	// whether it was. An empty value deletes the key.
	swap(ctx context.Context, key string, rev int64, value string, lease lease) (bool, error)
	// put writes a key.
	put(ctx context.Context, key, value string, lease lease) error
	// grant returns a lease that is kept alive until it is closed; done is closed when
	// it is lost.
	grant(ctx context.Context, ttl time.Duration) (l lease, done <-chan struct{}, end func(), err error)
	close() error
}

type pair struct {
	key, value string
	rev        int64
}

// lease is a lease's id; 0: what is written stays.
type lease int64

// etcdStore is a store in etcd.
type etcdStore struct {
	client *clientv3.Client
	own    bool // the client is closed with the store
}

func (s *etcdStore) list(ctx context.Context, prefix string) ([]pair, error) {
	resp, err := s.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByKey, clientv3.SortAscend))
	if err != nil {
		return nil, err
	}
	var pairs []pair
	for _, kv := range resp.Kvs {
		pairs = append(pairs, pair{string(kv.Key), string(kv.Value), kv.ModRevision})
	}
	return pairs, nil
}

func options(l lease) []clientv3.OpOption {
	if l == 0 {
		return nil
	}
	return []clientv3.OpOption{clientv3.WithLease(clientv3.LeaseID(l))}
}

func (s *etcdStore) swap(ctx context.Context, key string, rev int64, value string, l lease) (bool, error) {
	op := clientv3.OpPut(key, value, options(l)...)
	if value == "" {
		op = clientv3.OpDelete(key)
	}
	// A key that does not exist has revision 0.
	resp, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", rev)).Then(op).Commit()
	if err != nil {
		return false, err
	}
	return resp.Succeeded, nil
}

func (s *etcdStore) put(ctx context.Context, key, value string, l lease) error {
	_, err := s.client.Put(ctx, key, value, options(l)...)
	return err
}

func (s *etcdStore) grant(ctx context.Context, ttl time.Duration) (lease, <-chan struct{}, func(), error) {
	resp, err := s.client.Grant(ctx, int64(ttl/time.Second))
	if err != nil {
		return 0, nil, nil, err
	}
	session, err := concurrency.NewSession(s.client, concurrency.WithLease(resp.ID), concurrency.WithTTL(int(ttl/time.Second)))
	if err != nil {
		return 0, nil, nil, err
	}
	end := func() {
		session.Orphan() // its own Close would try for as long as the lease lasts
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = s.client.Revoke(ctx, resp.ID)
	}
	return lease(resp.ID), session.Done(), end, nil
}

func (s *etcdStore) close() error {
	if !s.own {
		return nil
	}
	if err := s.client.Close(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
