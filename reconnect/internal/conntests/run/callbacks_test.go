package run_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Each callback of a Conn, and what a callback may do.

// act is what a callback does in a test. ctx is nil if the callback gets no context.
type act func(ctx context.Context)

// hook returns how a test sets a hook of a Trace.
func hook[E any](of func(*reconnect.Trace) *func(E)) func(o *reconnect.Options, f act) {
	return func(o *reconnect.Options, f act) {
		*of(o.Run.Trace) = func(E) { f(nil) }
	}
}

// callbacks are the functions that a Conn calls, by the names of [reconnect.SlowHandler], and how a test sets each.
var callbacks = map[string]func(o *reconnect.Options, f act){
	"OnMessage": func(o *reconnect.Options, f act) {
		o.OnMessage = func(ctx context.Context, _ reconnect.Message) { f(ctx) }
	},
	"OnSeam": func(o *reconnect.Options, f act) {
		o.OnSeam = func(ctx context.Context, _ *reconnect.Seam) { f(ctx) }
	},
	"Keep": func(o *reconnect.Options, f act) {
		o.Outbox.Keep = func(ctx context.Context, _ reconnect.Outgoing, _ error) bool { f(ctx); return true }
	},
	"OnReceipt": func(o *reconnect.Options, f act) {
		o.Outbox.OnReceipt = func(ctx context.Context, _ reconnect.Receipt) { f(ctx) }
	},
	"KeepAlive.Message": func(o *reconnect.Options, f act) {
		o.KeepAlive = reconnect.KeepAlive{
			Every:   10 * time.Second,
			Message: func() conn.Message { f(nil); return scene.Text("idle") },
		}
	},
	"Rotate.Allowed": func(o *reconnect.Options, f act) {
		o.Rotate.After, o.Rotate.Allowed = time.Minute, func(time.Time) bool { f(nil); return true }
	},
	"Stall.Expected": func(o *reconnect.Options, f act) {
		o.Stall = reconnect.Stall{Limit: time.Hour, Expected: func(time.Time) bool { f(nil); return true }}
	},
	"Policy": func(o *reconnect.Options, f act) { o.Run.Policy = actingPolicy(f) },
	"Classify": func(o *reconnect.Options, f act) {
		o.Run.Classify = func(err error) backoff.Verdict { f(nil); return backoff.Classify(err) }
	},
	"the gate's done": func(o *reconnect.Options, f act) {
		o.Run.Gate, o.Run.Host = openGate(func(backoff.Verdict) { f(nil) }), "h"
	},
	"Layer.Receive": func(o *reconnect.Options, f act) {
		o.Layers = []*reconnect.Layer{{Receive: func(reconnect.Message) bool { f(nil); return false }}}
	},
	"Layer.Ready": func(o *reconnect.Options, f act) {
		o.Layers = []*reconnect.Layer{{Ready: func(uint64) { f(nil) }}}
	},
	"Layer.Lost": func(o *reconnect.Options, f act) {
		o.Layers = []*reconnect.Layer{{Lost: func(uint64, error) { f(nil) }}}
	},
	"Layer.End": func(o *reconnect.Options, f act) { o.Layers = []*reconnect.Layer{{End: func(error) { f(nil) }}} },

	"Trace.GateStart": func(o *reconnect.Options, f act) {
		o.Run.Gate, o.Run.Host = openGate(func(backoff.Verdict) {}), "h"
		o.Run.Trace.GateStart = func(reconnect.GateStart) { f(nil) }
	},
	"Trace.GateDone": func(o *reconnect.Options, f act) {
		o.Run.Gate, o.Run.Host = openGate(func(backoff.Verdict) {}), "h"
		o.Run.Trace.GateDone = func(reconnect.GateDone) { f(nil) }
	},
	"Trace.DialStart":      hook(func(t *reconnect.Trace) *func(reconnect.DialStart) { return &t.DialStart }),
	"Trace.DialHung":       hook(func(t *reconnect.Trace) *func(reconnect.DialHung) { return &t.DialHung }),
	"Trace.DialDone":       hook(func(t *reconnect.Trace) *func(reconnect.DialDone) { return &t.DialDone }),
	"Trace.AddressIgnored": hook(func(t *reconnect.Trace) *func(reconnect.AddressIgnored) { return &t.AddressIgnored }),
	"Trace.SessionStart":   hook(func(t *reconnect.Trace) *func(*reconnect.Session) { return &t.SessionStart }),
	"Trace.SessionReady":   hook(func(t *reconnect.Trace) *func(*reconnect.Session) { return &t.SessionReady }),
	"Trace.SessionDone":    hook(func(t *reconnect.Trace) *func(reconnect.SessionDone) { return &t.SessionDone }),
	"Trace.RotateStart":    hook(func(t *reconnect.Trace) *func(reconnect.RotateStart) { return &t.RotateStart }),
	"Trace.RotateDone":     hook(func(t *reconnect.Trace) *func(reconnect.RotateDone) { return &t.RotateDone }),
	"Trace.WaitStart":      hook(func(t *reconnect.Trace) *func(reconnect.WaitStart) { return &t.WaitStart }),
	"Trace.WaitDone":       hook(func(t *reconnect.Trace) *func(reconnect.WaitDone) { return &t.WaitDone }),
	"Trace.ProbeStart":     hook(func(t *reconnect.Trace) *func(reconnect.ProbeStart) { return &t.ProbeStart }),
	"Trace.ProbeDone":      hook(func(t *reconnect.Trace) *func(reconnect.ProbeDone) { return &t.ProbeDone }),
	"Trace.ConnDone":       hook(func(t *reconnect.Trace) *func(reconnect.ConnDone) { return &t.ConnDone }),
}

// untimed are the callbacks that SlowHandler does not name: those that wait for the network have a
// limit of their own, and SlowHandler and Overdue delay nothing but the next report.
var untimed = map[string]func(o *reconnect.Options, f act){
	"OnSession": func(o *reconnect.Options, f act) {
		o.OnSession = func(ctx context.Context, _ *reconnect.Opening) error { f(ctx); return nil }
	},
	"Layer.Open": func(o *reconnect.Options, f act) {
		open := func(ctx context.Context, _ *reconnect.Opening) error {
			f(ctx)
			return nil
		}
		o.Layers = []*reconnect.Layer{{Open: open}}
	},
	"Liveness.Probe": func(o *reconnect.Options, f act) {
		o.Liveness.Probe = func(ctx context.Context, write func(conn.Message) error) error {
			f(ctx)
			return write(scene.Text("alive?"))
		}
	},
	"Trace.SlowHandler": func(o *reconnect.Options, f act) {
		o.Run.Trace.DialDone = slowDial()
		o.Run.Trace.SlowHandler = func(reconnect.SlowHandler) { f(nil) }
	},
	"Trace.Overdue": func(o *reconnect.Options, f act) {
		o.Run.Trace.DialDone = slowDial()
		o.Run.Trace.Overdue = func(reconnect.Overdue) { f(nil) }
	},
}

// slowDial returns a hook whose first call takes five minutes.
func slowDial() func(reconnect.DialDone) {
	var called atomic.Bool
	return func(reconnect.DialDone) {
		if !called.Swap(true) {
			time.Sleep(5 * time.Minute)
		}
	}
}

// allCallbacks returns the callbacks and the untimed ones.
func allCallbacks() map[string]func(o *reconnect.Options, f act) {
	all := maps.Clone(callbacks)
	maps.Copy(all, untimed)
	return all
}

// actingPolicy is a Policy that acts, and then waits a second.
type actingPolicy act

func (p actingPolicy) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	p(nil)
	return backoff.Step{Wait: time.Second, Connect: 5 * time.Second, Handshake: 10 * time.Second}, true
}

// live lets a Conn with the options o live for a while, so that each of its callbacks is called: its first
// dial fails, its second handshake is not answered in time, messages come and go, it is silent for a while,
// rotates, and is lost. It returns how its sessions have ended. began gets the Conn before its first dial.
func live(t *testing.T, o *reconnect.Options, began func(c *reconnect.Conn)) (ends []error) {
	t.Helper()
	if o.OnMessage == nil && o.OnSeam != nil {
		o.OnMessage = func(context.Context, reconnect.Message) {}
	}
	if o.Outbox.OnReceipt == nil {
		o.Outbox.OnReceipt = func(context.Context, reconnect.Receipt) {}
	}
	if o.Run.Policy == nil {
		o.Run.Policy = scene.Hanging{}
	}
	o.WhenDown = reconnect.WhenDownKeep
	var mu sync.Mutex // guards what follows
	var peers []*conntest.Fake
	dials := 0
	o.Layers = append([]*reconnect.Layer{{Start: func(c *reconnect.Conn) error { began(c); return nil }}}, o.Layers...)
	done := o.Run.Trace.SessionDone
	o.Run.Trace.SessionDone = func(e reconnect.SessionDone) {
		mu.Lock()
		ends = append(ends, e.Cause)
		mu.Unlock()
		if done != nil {
			done(e)
		}
	}
	c, err := reconnect.New(reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
		mu.Lock()
		dials++
		n := dials
		mu.Unlock()
		switch n {
		case 1:
			return nil, scene.ErrLost
		case 2:
			backoff.AttemptFrom(ctx).Connected()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		mu.Lock()
		defer mu.Unlock()
		peer := conntest.NewFake(&scene.Alive)
		peers = append(peers, peer)
		return peer.Conn(), nil
	}), o)
	require.NoError(t, err)
	newest := func() *conntest.Fake {
		mu.Lock()
		defer mu.Unlock()
		return peers[len(peers)-1]
	}
	if o.OnMessage == nil {
		var reader sync.WaitGroup
		defer reader.Wait()
		reader.Go(func() {
			for range c.Messages(context.Background()) {
			}
		})
	}
	life := 20 * time.Minute
	for at := time.Duration(0); at < life; at += 5 * time.Second {
		time.Sleep(5 * time.Second)
		synctest.Wait()
		mu.Lock()
		connected := len(peers) > 0
		mu.Unlock()
		if !connected || at%(2*time.Minute) > time.Minute { // the peer is quiet now and then
			continue
		}
		newest().Deliver(scene.Text("tick"))
		switch {
		case at%(2*time.Minute) == 20*time.Second:
			_ = c.Send(reconnect.Outgoing{Message: scene.Text("sent")})
		case at%(4*time.Minute) == 30*time.Second:
			c.Rotate(c.Status().Session, reconnect.Advice{URL: "wss://other.example/"})
		case at%(4*time.Minute) == 150*time.Second: // a message is being written, and another one waits
			newest().Hold()
			_ = c.Send(reconnect.Outgoing{Message: scene.Text("held"), Repeatable: true})
			_ = c.Send(reconnect.Outgoing{Message: scene.Text("kept")})
			synctest.Wait()
			newest().Fail(scene.ErrLost)
		}
	}
	scene.CloseAndWait(c)
	return ends
}

// options returns options whose Trace a test may change.
func traced() *reconnect.Options {
	return &reconnect.Options{Run: reconnect.RunOptions{Trace: new(reconnect.Trace)}}
}

// Each callback is timed: SlowHandler names it, Overdue follows, and it does not count against the peer.
func TestSlowCallbackIsNamedAndNotThePeersFault(t *testing.T) {
	for name, set := range callbacks {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, _ *scene.Scene) {
				o := traced()
				var acted atomic.Bool
				set(o, func(context.Context) {
					if !acted.Swap(true) {
						time.Sleep(2 * time.Minute)
					}
				})
				var mu sync.Mutex // guards reports
				var reports []string
				o.Run.Trace.SlowHandler = func(e reconnect.SlowHandler) {
					mu.Lock()
					defer mu.Unlock()
					reports = append(reports, fmt.Sprint(e.What, " slow"))
				}
				o.Run.Trace.Overdue = func(e reconnect.Overdue) {
					mu.Lock()
					defer mu.Unlock()
					reports = append(reports, fmt.Sprint(e.What, " overdue"))
				}
				for _, err := range live(t, o, func(*reconnect.Conn) {}) {
					require.NotErrorIs(t, err, reconnect.ErrSilent)
				}
				require.NotEmpty(t, reports)
				require.Equal(t, name+" slow", reports[0])
				require.Contains(t, reports, name+" overdue")
				allowed := []string{name + " slow", name + " overdue"}
				if name == "Trace.AddressIgnored" { // the dial calls it, and does not end with its context
					allowed = append(allowed, "dial overdue")
				}
				for _, r := range reports {
					require.Contains(t, allowed, r)
				}
			})
		})
	}
}

// What OnSession delivers to is named, although OnSession has a limit of its own.
func TestSlowFunctionIsNamedInDeliver(t *testing.T) {
	slow := func() { time.Sleep(25 * time.Second) }
	for name, set := range map[string]func(o *reconnect.Options){
		"OnMessage": func(o *reconnect.Options) {
			o.OnMessage = func(context.Context, reconnect.Message) { slow() }
		},
		"Layer.Receive": func(o *reconnect.Options) {
			o.Layers = []*reconnect.Layer{{Receive: func(reconnect.Message) bool { slow(); return true }}}
		},
	} {
		for rotates, want := range map[bool]string{false: name + " of 1", true: name + " of 2"} {
			t.Run(want, func(t *testing.T) {
				scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
					var seen scene.Notes
					o := scene.Rotating(reconnect.OverlapMix)
					set(&o)
					o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
						if rotates != (op.Session == 2) {
							return nil
						}
						return op.Deliver(scene.Text("x"))
					}
					o.Run.Trace = &reconnect.Trace{SlowHandler: func(e reconnect.SlowHandler) {
						seen.Add(fmt.Sprint(e.What, " of ", e.Session))
					}}
					c := s.Open(&o)
					s.WantDial().Accept()
					if rotates {
						synctest.Wait()
						c.Rotate(1, reconnect.Advice{})
						s.WantDial().Accept()
					}
					time.Sleep(time.Minute)
					require.Equal(t, []string{want}, seen.All())
				})
			})
		}
	}
}

// With OverlapMix OnMessage waits for the call of the other session, and is timed from then on.
func TestSlowOnMessageIsNamedAfterAnotherOne(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var seen scene.Notes
		o := scene.Rotating(reconnect.OverlapMix)
		o.OnMessage = func(context.Context, reconnect.Message) { time.Sleep(25 * time.Second) }
		o.Run.Trace = &reconnect.Trace{SlowHandler: func(e reconnect.SlowHandler) {
			seen.Add(fmt.Sprint(e.What, " of ", e.Session))
		}}
		c := s.Open(&o)
		one := s.WantDial().Accept()
		synctest.Wait()
		c.Rotate(1, reconnect.Advice{})
		two := s.WantDial().Accept()
		synctest.Wait()
		one.Deliver(scene.Text("x"))
		synctest.Wait()
		two.Deliver(scene.Text("x"))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"OnMessage of 1", "OnMessage of 2"}, seen.All())
	})
}

// Every callback that live does not call is a hole in the tests above.
func TestLiveCallsEachCallback(t *testing.T) {
	for name, set := range allCallbacks() {
		scene.InBubble(t, func(t *testing.T, _ *scene.Scene) {
			o := traced()
			var calls atomic.Int32
			set(o, func(context.Context) { calls.Add(1) })
			live(t, o, func(*reconnect.Conn) {})
			require.NotZero(t, calls.Load(), name)
		})
	}
}

// Each function that a Conn may be given is a callback of the tests above. Layer.Start is called by New alone.
func TestCallbacksAreThoseOfOptions(t *testing.T) {
	var names []string
	var look func(in reflect.Type, path string)
	look = func(in reflect.Type, path string) {
		for in.Kind() == reflect.Pointer || in.Kind() == reflect.Slice {
			in = in.Elem()
		}
		if in.Kind() == reflect.Func {
			names = append(names, path)
		}
		if in.Kind() != reflect.Struct || in.PkgPath() != reflect.TypeFor[reconnect.Options]().PkgPath() {
			return
		}
		switch path {
		case "Run", "Outbox":
			path = ""
		case "Layers":
			path = "Layer"
		}
		for i := range in.NumField() {
			if f := in.Field(i); f.IsExported() {
				look(f.Type, strings.TrimPrefix(path+"."+f.Name, "."))
			}
		}
	}
	look(reflect.TypeFor[reconnect.Options](), "")
	names = append(names, "Policy", "the gate's done") // of the interfaces
	names = slices.DeleteFunc(names, func(name string) bool { return name == "Layer.Start" })
	require.ElementsMatch(t, slices.Collect(maps.Keys(allCallbacks())), names)
}

// Each callback has a row in the table of doc.go, and so have the other functions of the user that are called.
func TestDocSaysWhatEachCallbackDelays(t *testing.T) {
	text, err := os.ReadFile("../../../doc.go")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "//	callback ")
	require.True(t, found)
	var names []string
	for line := range strings.Lines(table) {
		row, isRow := strings.CutPrefix(line, "//	")
		if !isRow {
			if line == "//\n" {
				break
			}
			continue // the rest of the head
		}
		cells := regexp.MustCompile(`\s{2,}`).Split(strings.TrimSpace(row), -1)
		require.Len(t, cells, 3, row)
		of := ""
		for name := range strings.SplitSeq(cells[0], ", ") {
			if prefix, _, ok := strings.Cut(name, "."); ok && prefix == "Trace" {
				of = prefix + "."
			} else if of != "" {
				name = of + name
			}
			names = append(names, name)
		}
	}
	want := slices.Collect(maps.Keys(allCallbacks()))
	for i, name := range want {
		want[i] = strings.TrimPrefix(name, "Outbox.")
	}
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, "Outbox.")
	}
	want = append(want, "Layer.Start", "Dialer.Dial", "Gate.Acquire", "serve", "Close (of Run)")
	require.ElementsMatch(t, want, names)
}

// methods are the methods of a Conn. A method that waits does so until ctx is done.
var methods = map[string]func(ctx context.Context, c *reconnect.Conn){
	"Await":        func(ctx context.Context, c *reconnect.Conn) { _ = c.Await(ctx, reconnect.StateReady) },
	"AwaitReady":   func(ctx context.Context, c *reconnect.Conn) { _ = c.AwaitReady(ctx) },
	"AwaitSession": func(ctx context.Context, c *reconnect.Conn) { _, _ = c.AwaitSession(ctx) },
	"Check":        func(_ context.Context, c *reconnect.Conn) { c.Check() },
	"Close":        func(_ context.Context, c *reconnect.Conn) { _ = c.Close() },
	"Done":         func(_ context.Context, c *reconnect.Conn) { c.Done() },
	"Endpoint":     func(_ context.Context, c *reconnect.Conn) { c.Endpoint() },
	"Err":          func(_ context.Context, c *reconnect.Conn) { _ = c.Err() },
	"InCallback":   func(ctx context.Context, c *reconnect.Conn) { c.InCallback(ctx) },
	"Kick":         func(_ context.Context, c *reconnect.Conn) { c.Kick() },
	"Messages": func(ctx context.Context, c *reconnect.Conn) {
		for range c.Messages(ctx) {
			return
		}
	},
	"Read":   func(ctx context.Context, c *reconnect.Conn) { _, _ = c.Read(ctx, nil) },
	"Redial": func(_ context.Context, c *reconnect.Conn) { c.Redial(c.Status().Session, scene.ErrLost) },
	"Rotate": func(_ context.Context, c *reconnect.Conn) { c.Rotate(c.Status().Session, reconnect.Advice{}) },
	"Send":   func(_ context.Context, c *reconnect.Conn) { _ = c.Send(reconnect.Outgoing{Message: scene.Text("s")}) },
	"SendWait": func(ctx context.Context, c *reconnect.Conn) {
		_ = c.SendWait(ctx, reconnect.Outgoing{Message: scene.Text("s")})
	},
	"Shutdown": func(ctx context.Context, c *reconnect.Conn) { _ = c.Shutdown(ctx) },
	"State":    func(_ context.Context, c *reconnect.Conn) { c.State() },
	"Stats":    func(_ context.Context, c *reconnect.Conn) { c.Stats() },
	"Status":   func(_ context.Context, c *reconnect.Conn) { c.Status() },
	"Watch":    func(_ context.Context, c *reconnect.Conn) { c.Watch(&reconnect.Trace{})() },
	"Write":    func(ctx context.Context, c *reconnect.Conn) { _ = c.Write(ctx, scene.Text("w")) },
	"WriteTo": func(ctx context.Context, c *reconnect.Conn) {
		_ = c.WriteTo(ctx, c.Status().Session, scene.Text("w"))
	},
}

func TestMethodsAreThoseOfConn(t *testing.T) {
	conn := reflect.TypeFor[*reconnect.Conn]()
	for i := range conn.NumMethod() {
		require.Contains(t, methods, conn.Method(i).Name)
	}
	require.Len(t, methods, conn.NumMethod())
}

// Layer.Start runs before anything else, so that a method which waits does so until its context is done.
func TestEveryMethodReturnsInLayerStart(t *testing.T) {
	for method, call := range methods {
		t.Run(method, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o := traced()
				o.Layers = []*reconnect.Layer{{Start: func(c *reconnect.Conn) error {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					call(ctx, c)
					return nil
				}}}
				c := s.Open(o)
				require.LessOrEqual(t, s.Now(), time.Minute)
				require.NoError(t, c.Close())
				<-c.Done()
			})
		})
	}
}

// A callback may call every method, each time that it is called. None blocks forever with the
// context of the callback, or with one of a minute if it has none, and the Conn keeps redialing.
func TestEveryMethodReturnsInEveryCallback(t *testing.T) {
	for name, set := range allCallbacks() {
		for method, call := range methods {
			t.Run(name+" calls "+method, func(t *testing.T) {
				scene.InBubble(t, func(t *testing.T, _ *scene.Scene) {
					o := traced()
					var c *reconnect.Conn
					var began, returned, sessions atomic.Int32
					set(o, func(ctx context.Context) {
						if ctx == nil {
							with, cancel := context.WithTimeout(context.Background(), time.Minute)
							defer cancel()
							ctx = with
						}
						if began.Add(1) > 3 && began.Load()%50 > 0 { // each time would leave no time for anything else
							returned.Add(1)
							return
						}
						call(ctx, c)
						returned.Add(1)
					})
					ready := o.Run.Trace.SessionReady
					o.Run.Trace.SessionReady = func(s *reconnect.Session) {
						sessions.Add(1)
						if ready != nil {
							ready(s)
						}
					}
					live(t, o, func(made *reconnect.Conn) { c = made })
					require.NotZero(t, began.Load())
					require.Equal(t, began.Load(), returned.Load())
					if method != "Close" && method != "Shutdown" {
						require.Greater(t, sessions.Load(), int32(1))
					}
				})
			})
		}
	}
}

// openGate is a Gate that lets everybody through, and calls the function with each verdict.
type openGate func(backoff.Verdict)

func (f openGate) Acquire(context.Context, string) (func(backoff.Verdict), error) { return f, nil }
