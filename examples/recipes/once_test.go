//go:build linux

package recipes_test

import (
	"fmt"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// One message of garbage comes by the first connection, before or after the session is ready. The
// program prints what comes later, and nothing that is not.
func TestGarbageOnce(t *testing.T) {
	for name, talk := range talks {
		for i, text := range garbage {
			for _, place := range []string{"before", "after"} {
				t.Run(fmt.Sprint(name, "/", place, "/", i), func(t *testing.T) {
					t.Parallel()
					said := make(chan struct{}) // the server has said everything by a connection
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
					select {
					case <-said:
					case <-p.Ended():
						t.Fatalf("ended: %v", p.Cmd.ProcessState)
					}
					if talk.want != "" {
						p.Out.Find("(?m)" + talk.want)
					}
					codes := []int{0}
					if name == "lines" {
						codes = []int{0, 1} // 1 if the server is too slow: answers may be missing
					}
					interrupt(t, p, codes...)
					if !echoes[name] {
						for _, line := range linesOf(p.Out.String(), "") {
							require.Regexp(t, regexp.MustCompile(talk.want), line)
						}
					}
				})
			}
		}
	}
}
