package conn

import (
	"encoding/binary"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The cases of the Autobahn test suite for clients (crossbario/autobahn-testsuite), by its
// numbers: groups 1 to 7, 9 and 10, that is RFC 6455 without extensions. The server sends
// frames over a real socket, and the client sends each message back. Groups 12 and 13, that
// is RFC 7692, are in autobahn_deflate_test.go.

// autobahn is one case.
type autobahn struct {
	number string
	steps  []step
	chop   int    // how many bytes the server writes at once; 0: a step, byFrame: a frame
	why    string // if the suite wants something else, or leaves the outcome open
}

// step is what the server sends, and what the client must have said before the next step.
type step struct {
	sends string
	wants []string
}

const (
	byFrame  = -1
	failed   = "close 1002"
	badUTF8  = "close 1007"
	finished = "close 1000"
	greek    = "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"
	hello13  = "Hello, world!"
)

var goodbye = frame(fin|close8, "\x03\xe8")

// passes is a case in which the server closes the connection, once the client has said
// what it must.
func passes(number string, chop int, sends string, wants ...string) autobahn {
	return autobahn{number: number, chop: chop, steps: []step{{sends, wants}, {goodbye, []string{finished}}}}
}

// ends is a case in which the connection ends by what the server sends. The last of wants
// is the close frame of the client.
func ends(number string, chop int, sends string, wants ...string) autobahn {
	return autobahn{number: number, chop: chop, steps: []step{{sends, wants}}}
}

// chopped returns three cases that differ in how the bytes are chopped.
func chopped(group string, first int, c autobahn) (cs []autobahn) {
	for i, chop := range []int{0, byFrame, 1} {
		c.number, c.chop = fmt.Sprintf("%s.%d", group, first+i), chop
		cs = append(cs, c)
	}
	return cs
}

// wants is all that the client must say.
func (c autobahn) wants() (all []string) {
	for _, s := range c.steps {
		all = append(all, s.wants...)
	}
	return all
}

func framing() (cs []autobahn) {
	for group, data := range []string{"*", "\xfe"} {
		op := byte(text + group)
		for i, size := range []int{0, 125, 126, 127, 128, 65535, 65536, 65536} {
			payload, chop := strings.Repeat(data, size), 0
			if i == 7 {
				chop = 997
			}
			cs = append(cs, passes(fmt.Sprintf("1.%d.%d", group+1, i+1), chop, large(fin|op, payload), said(op, payload)))
		}
	}
	return cs
}

func pings() []autobahn {
	bytes, full := "\x00\xff\xfe\xfd\xfc\xfb\x00\xff", strings.Repeat("\xfe", 125)
	ten, pongs := "", []string{}
	for i := range 10 {
		payload := fmt.Sprint("payload-", i)
		ten, pongs = ten+frame(fin|ping, payload), append(pongs, said(pong, payload))
	}
	unsolicited := frame(fin|pong, "unsolicited pong payload")
	return []autobahn{
		passes("2.1", 0, frame(fin|ping, ""), said(pong, "")),
		passes("2.2", 0, frame(fin|ping, hello13), said(pong, hello13)),
		passes("2.3", 0, frame(fin|ping, bytes), said(pong, bytes)),
		passes("2.4", 0, frame(fin|ping, full), said(pong, full)),
		ends("2.5", 0, frame(fin|ping, full+"\xfe"), failed),
		passes("2.6", 1, frame(fin|ping, full), said(pong, full)),
		passes("2.7", 0, frame(fin|pong, "")),
		passes("2.8", 0, unsolicited),
		passes("2.9", 0, unsolicited+frame(fin|ping, "ping payload"), said(pong, "ping payload")),
		passes("2.10", 0, ten, pongs...),
		passes("2.11", 1, ten, pongs...),
	}
}

// reserved are the cases of reserved bits and opcodes.
func reserved() (cs []autobahn) {
	greeting, greets, asks := frame(fin|text, hello13), said(text, hello13), frame(fin|ping, "")
	cs = []autobahn{
		ends("3.1", 0, frame(fin|0x10|text, hello13), failed),
		ends("3.2", 0, greeting+frame(fin|0x20|text, hello13)+asks, greets, failed),
		ends("3.3", byFrame, greeting+frame(fin|0x30|text, hello13)+asks, greets, failed),
		ends("3.4", 1, greeting+frame(fin|0x40|text, hello13)+asks, greets, failed),
		ends("3.5", 0, frame(fin|0x50|bin, "\x00\xff\xfe\xfd\xfc\xfb\x00\xff"), failed),
		ends("3.6", 0, frame(fin|0x60|ping, hello13), failed),
		ends("3.7", 0, frame(fin|0x70|close8, ""), failed),
	}
	for group, op := range []byte{3, 11} {
		number := fmt.Sprintf("4.%d.", group+1)
		cs = append(cs,
			ends(number+"1", 0, frame(fin|op, ""), failed),
			ends(number+"2", 0, frame(fin|op+1, "reserved opcode payload"), failed),
			ends(number+"3", 0, greeting+frame(fin|op+2, "")+asks, greets, failed),
			ends(number+"4", 0, greeting+frame(fin|op+3, hello13)+asks, greets, failed),
			ends(number+"5", 1, greeting+frame(fin|op+4, hello13)+asks, greets, failed))
	}
	return cs
}

func fragmentation() (cs []autobahn) {
	one, two := frame(text, "fragment1"), frame(fin, "fragment2")
	both := said(text, "fragment1fragment2")
	astray := func(first byte) string { return frame(first, "non-continuation payload") + frame(fin|text, hello13) }
	twice := func(first byte) string {
		return strings.Repeat(frame(first, "fragment1")+frame(text, "fragment2")+frame(fin, "fragment3"), 2)
	}
	five := []step{
		{one + frame(0, "fragment2") + frame(fin|ping, "pongme 1!"), []string{said(pong, "pongme 1!")}},
		{frame(0, "fragment3") + frame(0, "fragment4") + frame(fin|ping, "pongme 2!") + frame(fin, "fragment5"),
			[]string{said(pong, "pongme 2!"), said(text, "fragment1fragment2fragment3fragment4fragment5")}},
		{goodbye, []string{finished}},
	}
	cs = []autobahn{
		ends("5.1", 0, frame(ping, "fragment1")+two, failed),
		ends("5.2", 0, frame(pong, "fragment1")+two, failed),
		ends("5.15", 0, one+two+frame(0, "fragment3")+frame(fin|text, "fragment4"), both, failed),
		ends("5.16", 0, twice(0), failed),
		ends("5.17", 0, twice(fin), failed),
		ends("5.18", 0, one+frame(fin|text, "fragment2"), failed),
		{number: "5.19", steps: five},
		{number: "5.20", steps: five, chop: byFrame},
	}
	cs = append(cs, chopped("5", 3, passes("", 0, one+two, both))...)
	cs = append(cs, chopped("5", 6, passes("", 0, one+frame(fin|ping, "ping payload")+two, said(pong, "ping payload"), both))...)
	cs = append(cs, chopped("5", 9, ends("", 0, astray(fin), failed))...)
	return append(cs, chopped("5", 12, ends("", 0, astray(0), failed))...)
}

// closeFrames are the cases of close frames, to a client that checks UTF-8 or does not.
func closeFrames(check bool) (cs []autobahn) {
	world, mega := frame(fin|text, "Hello World!"), strings.Repeat("BAsd7&jh23", 26_215)[:256<<10]
	reason := strings.Repeat("*", 123)
	spoilt, why := badUTF8, ""
	if !check {
		spoilt, why = finished, "a reason that was cut inside a rune must not cost the code"
	}
	cs = []autobahn{
		passes("7.1.1", 0, world, said(text, "Hello World!")),
		ends("7.1.2", 0, goodbye+frame(fin|close8, ""), finished),
		ends("7.1.3", 0, goodbye+frame(fin|ping, ""), finished),
		ends("7.1.4", 0, goodbye+world, finished),
		ends("7.1.5", 0, frame(text, "fragment1")+goodbye+frame(fin, "fragment2"), finished),
		ends("7.1.6", 0, large(fin|text, mega)+world+goodbye+frame(fin|ping, ""), said(text, mega), said(text, "Hello World!"), finished),
		ends("7.3.1", 0, frame(fin|close8, ""), "close"),
		ends("7.3.2", 0, frame(fin|close8, "a"), failed),
		ends("7.3.3", 0, goodbye, finished),
		ends("7.3.4", 0, frame(fin|close8, "\x03\xe8Hello World!"), finished),
		ends("7.3.5", 0, frame(fin|close8, "\x03\xe8"+reason), finished),
		ends("7.3.6", 0, frame(fin|close8, "\x03\xe8"+reason+"*"), failed),
		{number: "7.5.1", why: why, steps: []step{{frame(fin|close8, "\x03\xe8"+greek+"\xed\xa0\x80edited"), []string{spoilt}}}},
	}
	for group, codes := range map[string][]uint16{
		"7.7":  {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999},
		"7.9":  {0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999},
		"7.13": {5000, 65535},
	} {
		for i, code := range codes {
			want, why := failed, ""
			switch group {
			case "7.7":
				want = fmt.Sprint("close ", code)
			case "7.13":
				why = "the suite leaves open what a client makes of codes that RFC 6455 does not define"
			}
			payload := string(binary.BigEndian.AppendUint16(nil, code))
			cs = append(cs, autobahn{fmt.Sprintf("%s.%d", group, i+1), []step{{frame(fin|close8, payload), []string{want}}}, 0, why})
		}
	}
	return cs
}

// large is frame for payloads of any size.
func large(first byte, payload string) string {
	if len(payload) <= 0xffff {
		return frame(first, payload)
	}
	return string(binary.BigEndian.AppendUint64([]byte{first, 127}, uint64(len(payload)))) + payload
}

// runCases tests a client with these options in each of the cases.
func runCases(t *testing.T, cases []autobahn, o *WebSocketOptions) {
	s := startFuzzer(t, cases)
	for i, c := range cases {
		passed := t.Run(c.number, func(t *testing.T) {
			if c.why != "" {
				t.Log(c.why)
			}
			ours := s.dial(t, i, o)
			defer ours.CloseNow()
			for m, err := ours.Read(nil); err == nil; m, err = ours.Read(m.Data) {
				require.NoError(t, ours.Write(m))
			}
			ours.CloseNow()
			require.Equal(t, c.wants(), <-s.said)
		})
		if !passed { // a client that does not hang up costs time
			return
		}
	}
}

var checked = &WebSocketOptions{CheckUTF8: true}

func allCases() (all []autobahn) {
	for _, cases := range [][]autobahn{framing(), pings(), reserved(), fragmentation(), texts(true), closeFrames(true), limits()} {
		all = append(all, cases...)
	}
	return all
}

func TestAutobahn(t *testing.T) { runCases(t, allCases(), checked) }

func TestAutobahnWithoutTheCheckOfUTF8(t *testing.T) {
	runCases(t, append(texts(false), closeFrames(false)...), nil)
}

func TestEveryCaseOfAutobahnIsThereOnce(t *testing.T) {
	want, got := map[string]int{}, map[string]int{}
	for group, cases := range map[string]int{
		"1.1": 8, "1.2": 8, "2": 11, "3": 7, "4.1": 5, "4.2": 5, "5": 20,
		"6.1": 3, "6.2": 4, "6.3": 2, "6.4": 4, "6.5": 5, "6.6": 11, "6.7": 4, "6.8": 2, "6.9": 4, "6.10": 3, "6.11": 5,
		"6.12": 8, "6.13": 5, "6.14": 10, "6.15": 1, "6.16": 3, "6.17": 5, "6.18": 5, "6.19": 5, "6.20": 7, "6.21": 8,
		"6.22": 34, "6.23": 7, "7.1": 6, "7.3": 6, "7.5": 1, "7.7": 13, "7.9": 9, "7.13": 2,
		"9.1": 6, "9.2": 6, "9.3": 9, "9.4": 9, "9.5": 6, "9.6": 6, "9.7": 6, "9.8": 6, "10.1": 1,
	} {
		for i := range cases {
			want[fmt.Sprintf("%s.%d", group, i+1)] = 1
		}
	}
	for _, c := range allCases() {
		got[c.number]++
	}
	require.True(t, maps.Equal(want, got), "%v", got)
}

// RFC 6455, section 5.2, which the suite does not test: "the most significant bit MUST be 0".
func TestALengthWithItsFirstBitGetsACloseFrame(t *testing.T) {
	sends := "\x82\xff\x80\x00\x00\x00\x00\x00\x00\x01"
	masked, unmasked := sends+"keyx", strings.Replace(sends, "\xff", "\x7f", 1)+"x"
	runCases(t, []autobahn{ends("masked", 0, masked, failed), ends("unmasked", 0, unmasked, failed), ends("slow", 1, unmasked, failed)}, nil)
}

// RFC 6455, section 5.2, which the suite does not test: "the minimal number of bytes MUST be used".
func TestALengthWithMoreBytesThanItNeedsGetsACloseFrame(t *testing.T) {
	first, long := frame(fin|bin, "a"), "\x82\x7e\x00\x05hello"
	runCases(t, []autobahn{ends("alone", 0, long, failed), ends("at hand", 0, first+long, said(bin, "a"), failed)}, nil)
}
