package redisgate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// redisServer is a real redis-server, which keeps nothing on disk.
type redisServer struct {
	addr string
	args []string
	cmd  *exec.Cmd     // nil: it does not run
	cpu  time.Duration // of those that have ended
}

func newRedisServer(t *testing.T, args ...string) *redisServer {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &redisServer{addr: free.Addr().String(), args: args}
	require.NoError(t, free.Close())
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

// start starts the server, and returns when it answers.
func (s *redisServer) start(t *testing.T) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.addr)
	require.NoError(t, err)
	s.cmd = exec.Command("redis-server", append([]string{
		"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir(),
	}, s.args...)...)
	require.NoError(t, s.cmd.Start())
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", s.addr)
		if err == nil {
			err = c.Close()
		}
		return err == nil
	}, time.Minute, 20*time.Millisecond)
}

// kill kills the server at once.
func (s *redisServer) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cpu += s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime()
		s.cmd = nil
	}
}

// client returns a client of the server that is closed at the end of the test.
func (s *redisServer) client(t *testing.T) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// acceptor is the server that all dial. It keeps each connection and notes when it came.
type acceptor struct {
	net.Listener
	ended sync.WaitGroup

	mu    sync.Mutex // guards what follows
	came  []time.Time
	conns []net.Conn
}

func newAcceptor(t *testing.T) *acceptor {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	a := &acceptor{Listener: ln}
	a.ended.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			a.mu.Lock()
			a.came, a.conns = append(a.came, time.Now()), append(a.conns, c)
			a.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		ln.Close()
		a.ended.Wait()
		for _, c := range a.conns {
			c.Close()
		}
	})
	return a
}

func (a *acceptor) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.came)
}

// reach waits until so many connections have come.
func (a *acceptor) reach(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return a.count() >= n }, 5*time.Minute, 20*time.Millisecond,
		"so many connections should have come: %d", n)
}

// process is a child.
type process struct {
	cmd *exec.Cmd
	in  io.Closer
	out bytes.Buffer
}

// startProcess starts a child, which must be ended by end.
func startProcess(t *testing.T, s *redisServer, a *acceptor, conns int) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), childEnv+"="+s.addr, targetEnv+"="+a.Addr().String(), connsEnv+"="+strconv.Itoa(conns))
	p.cmd.Stdout, p.cmd.Stderr = &p.out, os.Stderr
	in, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	p.in = in
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	return p
}

func (p *process) end(t *testing.T) (r report) {
	t.Helper()
	require.NoError(t, p.in.Close())
	require.NoError(t, p.cmd.Wait())
	require.NoError(t, json.Unmarshal(p.out.Bytes(), &r), p.out.String())
	require.Empty(t, r.Error)
	return r
}

func cpu(p *os.ProcessState) time.Duration { return p.UserTime() + p.SystemTime() }

// Four processes with 500 connections each, or 150 unless REDIAL_LONG is set, share 100 dials a second.
// What is asserted is when the dials were let begin, by the clock that the processes share. What the
// server saw is logged: a dial reaches it a little later, one more than another.
func TestFourProcessesShareOneLimit(t *testing.T) {
	t.Parallel()
	conns, parallel := 150, (*testing.T).Parallel
	if os.Getenv("REDIAL_LONG") != "" { // one after the other, because the long form is for measuring
		conns, parallel = 500, func(*testing.T) {}
	}
	t.Run("undisturbed", func(t *testing.T) {
		parallel(t)
		s := newRedisServer(t)
		warm(t, s)
		runFleet(t, s, conns, func(*acceptor) {})
	})
	t.Run("Redis is killed and started again", func(t *testing.T) {
		parallel(t)
		s := newRedisServer(t)
		reports := runFleet(t, s, conns, func(a *acceptor) {
			a.reach(t, conns)
			s.kill()
			a.reach(t, a.count()+140) // 100 at most were let begin before
			s.start(t)
			client := s.client(t)
			require.Eventually(t, func() bool {
				return client.Exists(t.Context(), "redisgate:{venue}:state").Val() == 1
			}, time.Minute, 20*time.Millisecond, "Redis is asked again")
		})
		var shared uint64
		for _, r := range reports {
			shared += r.Status.Shared
		}
		require.GreaterOrEqual(t, shared, uint64(40), "the shares are used meanwhile")
	})
}

// warm lets the first window of an empty server pass.
func warm(t *testing.T, s *redisServer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, newLimiter(t, s.client(t), fleetOptions()).Wait(ctx))
}

// runFleet lets four processes connect, disturbs them meanwhile, and checks that the limit held.
func runFleet(t *testing.T, s *redisServer, conns int, disturb func(*acceptor)) (reports []report) {
	a := newAcceptor(t)
	var procs []*process
	for range 4 {
		procs = append(procs, startProcess(t, s, a, conns))
	}
	disturb(a)
	a.reach(t, 4*conns)
	s.kill()
	var begun []time.Time
	var questions, void uint64
	var used time.Duration
	for _, p := range procs {
		r := p.end(t)
		for _, ns := range r.Begun {
			begun = append(begun, time.Unix(0, ns))
		}
		questions, void = questions+r.Status.Questions, void+r.Status.Void
		used += cpu(p.cmd.ProcessState)
		reports = append(reports, r)
	}
	require.GreaterOrEqual(t, len(begun), 4*conns)
	require.LessOrEqual(t, mostIn(begun, time.Second), 100)
	first := slices.MinFunc(begun, time.Time.Compare)
	t.Logf("%d connections, %.1f s from the first dial to the last connection; most dials in 1 s: %d, as the server saw them: %d; "+
		"%d questions to Redis, %.3f per dial; permits that were void: %d; CPU: processes %v, Redis %v",
		4*conns, a.came[len(a.came)-1].Sub(first).Seconds(), mostIn(begun, time.Second), mostIn(a.came, time.Second),
		questions, float64(questions)/float64(len(begun)), void, used.Round(time.Millisecond), s.cpu.Round(time.Millisecond))
	return reports
}
