// Package waits draws what a client of a policy waits in an outage ([Draw]): the waits by the number
// of the retry and by the time since the connection was lost.
//
// Three classic results have a function each: the waits of some users whose connections
// were lost at one instant ([Users]), the mean wait of Ethernet's truncated binary
// exponential backoff ([Ethernet]), and the moments of backoff with normally distributed
// noise ([Normals]). Each has the closed form beside what the library's own policies
// draw.
//
// The same seed gives the same draws on every machine.
package waits
