package conn

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// Groups 12 and 13 of Autobahn, that is RFC 7692: the server sends one compressed message
// after the answer to the other. Its files are replaced by data of the same kinds and sizes.

// deflateGroup is 18 cases that differ in the size of messages and of frames.
type deflateGroup struct {
	number string
	accept func(offer string) string // returns the extension that the server agrees on
	data   string
	op     byte
	why    string // if the extension is not agreed on
}

// deflateCase is one case.
type deflateCase struct {
	deflateGroup
	size, fragment int // of a message, and of a frame before its header; 0: all in one frame
}

const noWindow = "coder/websocket does not offer client_max_window_bits, because package compress/flate has one window only: the server has to decline"

func deflateGroups() []deflateGroup {
	json := jsonData(194_056)
	return []deflateGroup{
		{"12.1", accepting(false, 0), json, text, ""},
		{"12.2", accepting(false, 0), picture(263_222), bin, ""},
		{"12.3", accepting(false, 0), prose(222_218, 12), bin, ""},
		{"12.4", accepting(false, 0), htmlData(263_527), text, ""},
		{"12.5", accepting(false, 0), document(1_042_328), bin, ""},
		{"13.1", accepting(false, 0), json, text, ""},
		{"13.2", accepting(true, 0), json, text, ""},
		{"13.3", accepting(false, 8), json, text, noWindow},
		{"13.4", accepting(false, 15), json, text, noWindow},
		{"13.5", accepting(true, 8), json, text, noWindow},
		{"13.6", accepting(true, 15), json, text, noWindow},
		{"13.7", firstOf(accepting(true, 8), accepting(true, 0), accepting(false, 0)), json, text, ""},
	}
}

// cases returns the 18 cases, by the last part of the number less 1.
func (g deflateGroup) cases() (cs []deflateCase) {
	for _, size := range []int{16, 64, 256, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10} {
		cs = append(cs, deflateCase{g, size, 0})
	}
	for _, size := range []int{8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10} {
		cs = append(cs, deflateCase{g, size, 256})
	}
	for _, fragment := range []int{1 << 10, 4 << 10, 32 << 10} {
		cs = append(cs, deflateCase{g, 128 << 10, fragment})
	}
	return cs
}

// count returns how many messages the server sends: 1,000 in the suite, and here as many as
// have 64 KiB together, but no fewer than 3. With REDIAL_LONG it is 1,000.
func (c deflateCase) count() int {
	if os.Getenv("REDIAL_LONG") != "" {
		return 1000
	}
	return max(3, min(1000, 64<<10/c.size))
}

// message returns the message with that index. The data is read round and round.
func (c deflateCase) message(i int) string {
	at := i * c.size % len(c.data)
	m := c.data[at:min(at+c.size, len(c.data))]
	return m + c.data[:c.size-len(m)]
}

// accepting returns what a server answers to an offer that lets it ask for no context takeover
// and for a window of that many bits. Without such an offer the server declines.
func accepting(noTakeover bool, bits int) func(string) string {
	return func(offer string) string {
		if !strings.Contains(offer, "permessage-deflate") || bits > 0 && !strings.Contains(offer, "client_max_window_bits") {
			return ""
		}
		answer := "permessage-deflate"
		if strings.Contains(offer, "server_no_context_takeover") {
			answer += "; server_no_context_takeover"
		}
		if noTakeover {
			answer += "; client_no_context_takeover"
		}
		if bits > 0 {
			answer += fmt.Sprint("; client_max_window_bits=", bits)
		}
		return answer
	}
}

func firstOf(accept ...func(string) string) func(string) string {
	return func(offer string) string {
		for _, a := range accept {
			if answer := a(offer); answer != "" {
				return answer
			}
		}
		return ""
	}
}

// runDeflate tests a client with that mode in each of the cases.
func runDeflate(t *testing.T, mode websocket.CompressionMode, offers string) {
	for _, g := range deflateGroups() {
		cases := g.cases()
		s := startDeflateServer(t, cases)
		for i, c := range cases {
			passed := t.Run(fmt.Sprintf("%s.%d", g.number, i+1), func(t *testing.T) {
				ours, err := dialLoopback(fmt.Sprintf("ws://%s/%d", s.addr, i), mode, checked)
				require.NoError(t, err)
				defer ours.CloseNow()
				for m, err := ours.Read(nil); err == nil; m, err = ours.Read(m.Data) {
					require.NoError(t, ours.Write(m))
				}
				ours.CloseNow()
				got := <-s.results
				require.NoError(t, got.err)
				require.Equal(t, offers, got.offer)
				require.Equal(t, finished, got.close)
				c.check(t, got)
			})
			if !passed { // a client that does not hang up costs time
				return
			}
		}
	}
}

// check tests that the client has compressed what it should: all messages of 512 bytes
// or more, and none if the server has declined.
func (c deflateCase) check(t *testing.T, got deflateResult) {
	if c.why != "" {
		t.Log(c.why)
		require.NotContains(t, got.offer, "max_window_bits")
		require.Empty(t, got.answer)
		require.Zero(t, got.compressed)
		return
	}
	require.Contains(t, got.answer, "permessage-deflate")
	if c.size >= 512 {
		require.Equal(t, c.count(), got.compressed)
	}
}

func TestAutobahnCompressed(t *testing.T) {
	runDeflate(t, websocket.CompressionContextTakeover, "permessage-deflate")
}

func TestAutobahnCompressedWithoutContextTakeover(t *testing.T) {
	runDeflate(t, websocket.CompressionNoContextTakeover, "permessage-deflate; client_no_context_takeover; server_no_context_takeover")
}

// RFC 7692, section 7.1.2.2, which the suite does not test: a server may limit the client's
// window only if the client has offered it. A server may limit its own window at will.
func TestAWindowOfTheClientThatWasNotOfferedFailsTheHandshake(t *testing.T) {
	own := func(string) string { return "permessage-deflate; server_max_window_bits=15" }
	small := func(string) string { return "permessage-deflate; client_max_window_bits=8" }
	full := func(string) string { return "permessage-deflate; client_max_window_bits=15" }
	for name, g := range map[string]deflateGroup{"8": {accept: small, data: hello13}, "15": {accept: full, data: hello13}, "server": {accept: own, data: hello13}} {
		t.Run(name, func(t *testing.T) {
			s := startDeflateServer(t, []deflateCase{{g, len(hello13), 0}})
			ours, err := dialLoopback("ws://"+s.addr+"/0", websocket.CompressionContextTakeover, nil)
			if name != "server" {
				require.ErrorContains(t, err, "client_max_window_bits="+name)
				return
			}
			require.NoError(t, err)
			require.NoError(t, ours.CloseNow())
		})
	}
}

func TestEveryCompressedCaseOfAutobahnIsThereOnce(t *testing.T) {
	want, got := map[string]int{}, map[string]int{}
	for group, n := range map[int]int{12: 5, 13: 7} {
		for i := range n {
			want[fmt.Sprintf("%d.%d", group, i+1)] = 18
		}
	}
	for _, g := range deflateGroups() {
		got[g.number] += len(g.cases())
	}
	require.True(t, maps.Equal(want, got), "%v", got)
}
