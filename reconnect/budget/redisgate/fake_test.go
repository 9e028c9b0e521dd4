package redisgate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// server is as much of a Redis server as the script needs, in memory and in the time of a bubble. It
// runs the very script.
type server struct {
	mu       sync.Mutex // guards what follows; not held while a question waits
	offset   time.Duration
	run      string
	noInfo   bool
	err      error         // of every question
	hang     chan struct{} // questions wait until it is closed; nil: they do not
	deaf     bool          // requests hang though their context is done
	delay    time.Duration // on the way there, and on the way back
	script   string        // that was loaded
	hashes   map[string]map[string]string
	sets     map[string]map[string]float64
	commands int
	lua      *lua.LState
}

func newServer() *server {
	s := &server{run: "first", lua: lua.NewState()}
	s.flush()
	t := s.lua.NewTable()
	s.lua.SetFuncs(t, map[string]lua.LGFunction{"call": s.call, "pcall": s.call})
	s.lua.SetGlobal("redis", t)
	return s
}

// set changes the server.
func (s *server) set(change func(s *server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// asked returns how many questions have come.
func (s *server) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commands
}

// restart is what a server without persistence does.
func (s *server) restart() {
	s.set(func(s *server) { s.flush(); s.err, s.script, s.run = nil, "", s.run+"+" })
}

func (s *server) flush() {
	s.hashes, s.sets = map[string]map[string]string{}, map[string]map[string]float64{}
}

func (s *server) EvalSha(ctx context.Context, _ string, keys []string, args ...any) *redis.Cmd {
	return s.ask(ctx, "", keys, args)
}

func (s *server) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return s.ask(ctx, script, keys, args)
}

func (s *server) ask(ctx context.Context, script string, keys []string, args []any) *redis.Cmd {
	s.mu.Lock()
	delay, hang, deaf := s.delay, s.hang, s.deaf
	s.mu.Unlock()
	if deaf {
		<-hang
	} else if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return redis.NewCmdResult(nil, ctx.Err())
		}
	}
	time.Sleep(delay)
	s.mu.Lock()
	v, err := s.eval(script, keys, args)
	s.mu.Unlock()
	time.Sleep(delay)
	return redis.NewCmdResult(v, err)
}

func (s *server) eval(script string, keys []string, args []any) (any, error) {
	s.commands++
	if s.err != nil {
		return nil, s.err
	}
	if script != "" {
		s.script = script
	} else if s.script == "" {
		return nil, refusal("NOSCRIPT No matching script.")
	}
	table := s.lua.NewTable()
	for _, k := range keys {
		table.Append(lua.LString(k))
	}
	s.lua.SetGlobal("KEYS", table)
	table = s.lua.NewTable()
	for _, a := range args {
		table.Append(lua.LString(fmt.Sprint(a)))
	}
	s.lua.SetGlobal("ARGV", table)
	defer s.lua.SetTop(0)
	s.lua.Push(s.lua.NewFunctionFromProto(compiled(s.script)))
	if err := s.lua.PCall(0, 1, nil); err != nil {
		return nil, err
	}
	return s.lua.Get(-1).String(), nil
}

// protos are the compiled scripts, by their source.
var protos sync.Map

func compiled(script string) *lua.FunctionProto {
	if proto, ok := protos.Load(script); ok {
		return proto.(*lua.FunctionProto)
	}
	chunk, err := parse.Parse(strings.NewReader(script), "script")
	if err != nil {
		panic(err)
	}
	proto, err := lua.Compile(chunk, "script")
	if err != nil {
		panic(err)
	}
	protos.Store(script, proto)
	return proto
}

// refusal is an error that a Redis server returns.
type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

// call is redis.call of the script.
func (s *server) call(l *lua.LState) int {
	var a []string
	for i := 1; i <= l.GetTop(); i++ {
		a = append(a, l.ToString(i))
	}
	l.Push(s.command(l, a))
	return 1
}

func (s *server) command(l *lua.LState, a []string) lua.LValue {
	table := func(values ...lua.LValue) lua.LValue {
		t := l.NewTable()
		for _, v := range values {
			t.Append(v)
		}
		return t
	}
	field := func(v string, ok bool) lua.LValue {
		if !ok {
			return lua.LFalse
		}
		return lua.LString(v)
	}
	switch a[0] {
	case "TIME":
		us := time.Now().Add(s.offset).UnixMicro()
		return table(lua.LString(strconv.FormatInt(us/1e6, 10)), lua.LString(strconv.FormatInt(us%1e6, 10)))
	case "INFO":
		if s.noInfo {
			t := l.NewTable()
			t.RawSetString("err", lua.LString("NOPERM"))
			return t
		}
		return lua.LString("# Server\r\nrun_id:" + strings.ReplaceAll(s.run, "+", "x") + "\r\n")
	case "DEL":
		for _, k := range a[1:] {
			delete(s.hashes, k)
			delete(s.sets, k)
		}
		return lua.LNumber(0)
	case "HMGET":
		var got []lua.LValue
		for _, f := range a[2:] {
			v, ok := s.hashes[a[1]][f]
			got = append(got, field(v, ok))
		}
		return table(got...)
	case "HGET":
		v, ok := s.hashes[a[1]][a[2]]
		return field(v, ok)
	case "HLEN":
		return lua.LNumber(len(s.hashes[a[1]]))
	case "HDEL":
		delete(s.hashes[a[1]], a[2])
		return lua.LNumber(0)
	case "HSET":
		if s.hashes[a[1]] == nil {
			s.hashes[a[1]] = map[string]string{}
		}
		for i := 2; i < len(a); i += 2 {
			s.hashes[a[1]][a[i]] = a[i+1]
		}
		return lua.LNumber(0)
	}
	return s.sorted(a, table)
}

// sorted is the commands on sorted sets.
func (s *server) sorted(a []string, table func(...lua.LValue) lua.LValue) lua.LValue {
	set := s.sets[a[1]]
	order := make([]string, 0, len(set))
	for m := range set {
		order = append(order, m)
	}
	slices.SortFunc(order, func(x, y string) int {
		if set[x] != set[y] {
			return map[bool]int{true: -1, false: 1}[set[x] < set[y]]
		}
		return strings.Compare(x, y)
	})
	between := func(least, most string) (found []lua.LValue) {
		above, open := strings.CutPrefix(least, "(")
		for _, m := range order {
			if score := set[m]; score <= number(most) && score >= number(above) && !(open && score == number(above)) {
				found = append(found, lua.LString(m))
			}
		}
		return found
	}
	scores := func(members ...string) lua.LValue {
		var found []lua.LValue
		for _, m := range members {
			found = append(found, lua.LString(m), lua.LString(strconv.FormatFloat(set[m], 'f', -1, 64)))
		}
		return table(found...)
	}
	switch a[0] {
	case "ZADD":
		if set == nil {
			set = map[string]float64{}
			s.sets[a[1]] = set
		}
		member := a[len(a)-1]
		if _, ok := set[member]; !ok || a[2] != "NX" {
			set[member] = number(a[len(a)-2])
		}
		return lua.LNumber(0)
	case "ZREM":
		delete(set, a[2])
		return lua.LNumber(0)
	case "ZCARD":
		return lua.LNumber(len(set))
	case "ZSCORE":
		if _, ok := set[a[2]]; !ok {
			return lua.LFalse
		}
		return lua.LString(strconv.FormatFloat(set[a[2]], 'f', -1, 64))
	case "ZRANK":
		return lua.LNumber(slices.Index(order, a[2]))
	case "ZCOUNT":
		return lua.LNumber(len(between(a[2], a[3])))
	case "ZRANGEBYSCORE":
		return table(between(a[2], a[3])...)
	case "ZREMRANGEBYSCORE":
		for _, m := range between(a[2], a[3]) {
			delete(set, m.String())
		}
		return lua.LNumber(0)
	case "ZRANGE": // 0 -1 WITHSCORES
		return scores(order...)
	case "ZREVRANGE": // 0 0 WITHSCORES, or 0 -1 WITHSCORES
		slices.Reverse(order)
		if a[3] == "0" {
			order = order[:min(1, len(order))]
		}
		return scores(order...)
	case "PEXPIRE":
		return lua.LNumber(1)
	}
	panic(errors.New("the fake does not know " + a[0]))
}

func number(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return f
}
