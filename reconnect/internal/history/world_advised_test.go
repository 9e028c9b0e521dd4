package history

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/redial-go/redial/reconnect"
)

// drawAdvised draws whether advice names an address, from a stream of its own.
func (p *Plan) drawAdvised() {
	p.Settings.Advised = p.stream(12).IntN(3) == 0
	p.Settings = p.Settings.possible()
}

// advise adds an address and a hint to advice, if the plan says so. Each advice has an address of its own.
func (w *world) advise(a *reconnect.Advice) {
	if !w.set.Advised {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advices++
	a.URL, a.Hint = fmt.Sprintf("ws://advised-%d.test:80/v1", w.advices), fmt.Sprint(w.advices)
	if w.hasUser(w.advices) {
		a.URL = strings.Replace(a.URL, "//", "//me:pass@", 1)
	}
}

// hasUser reports whether advice n names an address with a user.
func (w *world) hasUser(n int) bool { return w.set.Odd && n%4 == 1 }

// followHint is the FollowHint of the dialer.
func followHint(to *url.URL) bool { return strings.HasPrefix(to.Host, "advised-") }

// atAdvised checks a dial at an advised address, if addr is one. All of them lead to the server, except each third.
func (w *world) atAdvised(ctx context.Context, network, addr string) error {
	name, ok := strings.CutPrefix(strings.TrimSuffix(addr, ".test:80"), "advised-")
	if !ok {
		return nil
	}
	n := atoi(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log("a dial at %s", addr)
	w.advised[n]++
	if w.mirror != nil {
		w.mirror.dead = true // no hook says that a failure there counts for nothing
	}
	w.check(AdvisedOnce, w.advised[n] == 1 && n <= w.advices && !w.hasUser(n), "%d times at %s, of %d", w.advised[n], addr, w.advices)
	w.check(HintOfAdvice, reconnect.HintFrom(ctx) == name, "%v at %s", reconnect.HintFrom(ctx), addr)
	if n%3 == 0 {
		return &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return nil
}
