package redisgate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/budget/redisgate"
)

// The environment of a child: the addresses of the Redis server and of the server that is dialed, and
// how many connections it has.
const (
	childEnv  = "REDISGATE_TEST_REDIS"
	targetEnv = "REDISGATE_TEST_TARGET"
	connsEnv  = "REDISGATE_TEST_CONNECTIONS"
)

// report is what a child says at its end.
type report struct {
	Begun  []int64 // Unix time in ns at which a dial was let begin, by the clock of the machine
	Status redisgate.Status
	Error  string
}

// fleetOptions are the options of the processes. Where nobody measures they are for a busy machine:
// a process that takes Redis to be away, and is alone with that, begins dials beside the others.
func fleetOptions() redisgate.Options {
	if os.Getenv("REDIAL_LONG") != "" {
		return hundred()
	}
	return patient()
}

// silent is a logger of go-redis that writes nothing.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// runChild is one process of a fleet. It keeps its connections until its standard input ends.
func runChild() {
	redis.SetLogger(silent{})
	r, err := child()
	if err != nil {
		r.Error = err.Error()
	}
	_ = json.NewEncoder(os.Stdout).Encode(r)
}

func child() (r report, err error) {
	client := redis.NewClient(&redis.Options{Addr: os.Getenv(childEnv), ContextTimeoutEnabled: true})
	defer client.Close()
	o := fleetOptions()
	l, err := redisgate.New(client, &o)
	if err != nil {
		return r, err
	}
	redisgate.OnPass(l, func(now time.Time, _ bool) { r.Begun = append(r.Begun, now.UnixNano()) }) // under the lock of l
	gate, err := budget.NewGate(&budget.GateOptions{
		Rate: -1, Concurrent: -1,
		Limiter: l,
	})
	if err != nil {
		return r, err
	}
	n, err := strconv.Atoi(os.Getenv(connsEnv))
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { keep(ctx, gate) })
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	wg.Wait()
	r.Status = l.Status()
	r.Status.Err = nil
	return r, l.Close()
}

// keep keeps one connection to the server.
func keep(ctx context.Context, gate reconnect.Gate) {
	host := os.Getenv(targetEnv)
	err := reconnect.Run(ctx, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", host)
	}, func(_ context.Context, c net.Conn, s *reconnect.Session) error {
		s.Ready()
		_, err := c.Read(make([]byte, 1))
		return err
	}, &reconnect.RunOptions{Gate: gate, Host: host})
	if ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
