package fleet
import ("testing";"fmt";"time")
func TestCnt(t *testing.T){
 st:=time.Now()
 r,_:=Run(t.Context(),Herd{N:1000000,Client:Client{Policy:Proposed()},Outage:Outage{Length:5*time.Second},Server:Server{Capacity:500,Queue:Drop}})
 fmt.Println(r.Dials,r.SYNs,r.Wasted,r.Up,time.Since(st))
}
