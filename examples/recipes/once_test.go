//go:build linux

package recipes_test

import (
	"sync"
	"testing"

	"github.com/redial-go/redial/examples/internal/program"
)

// One message of garbage comes by the first connection, before or after the session is ready. The
// program prints what comes later, and nothing that is not.
func TestGarbageOnce(t *testing.T) {
	for name, talk := range talks {
		for _, place := range []string{"before", "after"} {
			t.Run(name+"/"+place, func(t *testing.T) {
				t.Parallel()
				scenes := beginEach(t, name, func(text string) (wait func() *program.Program) {
					return startOnce(t, name, text, place)
				})
				for i, text := range garbageFor(name) {
					p := requireSound(t, codeOf(name), scenes[i])
					requireOutput(t, name, p, text, talk.want)
				}
			})
		}
	}
}

// startOnce starts a program whose first connection gets a text before or after the session is ready. wait returns
// it when the server has said everything by a connection.
func startOnce(t *testing.T, name, text, place string) (wait func() *program.Program) {
	t.Helper()
	talk := talks[name]
	said := make(chan struct{})
	var once sync.Once
	address := serveTalk(t, name, func(p peer, n int) {
		var before, after []string
		if n == 1 && place == "before" {
			before = []string{text}
		} else if n == 1 {
			after = []string{text}
		}
		if talk.run(p, before, after) == nil {
			once.Do(func() { close(said) })
		}
	})
	p := start(t, name, argumentsOf(t, name, address)...)
	if talk.input != "" {
		p.Type(talk.input)
	}
	return func() *program.Program {
		select {
		case <-said:
		case <-p.Ended():
			t.Fatalf("ended after %q: %v", text, p.Cmd.ProcessState)
		}
		if talk.want != "" {
			p.Out.Find("(?m)" + talk.want)
		}
		return p
	}
}
