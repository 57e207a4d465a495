#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""A program on Debian's pyverbs that does what stdin says, for a peer that is no NIC of ours.

One JSON object per line. First it tells its queue pair and its region; `connect`, `write`, `read`,
`memory` and `again` (a new queue pair) are answered by one line each. Group `foreign` runs it.
"""
import json
import sys

from pyverbs import enums as e
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

SIZE = 8192
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ


class Side:
    """The NIC's end."""

    def __init__(self):
        self.context = Context(name=min(device.name.decode() for device in get_device_list()))
        self.pd = PD(self.context)
        self.mr = MR(self.pd, SIZE, ACCESS)
        self.cq = CQ(self.context, 16)
        self.qp = None

    def again(self):
        caps = QPCap(max_send_wr=8, max_recv_wr=8, max_send_sge=1, max_recv_sge=1)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=caps))
        return {"qpn": self.qp.qp_num, "gid": str(self.context.query_gid(1, 0)),
                "address": self.mr.buf, "rkey": self.mr.rkey, "size": SIZE}

    def connect(self, gid, qpn, psn, timeout=14, retries=7):
        attr = QPAttr(path_mtu=e.IBV_MTU_1024, port_num=1)
        attr.rq_psn = attr.sq_psn = psn
        attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer = timeout, retries, 7, 12
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
        attr.dest_qp_num, attr.qp_access_flags = qpn, ACCESS
        attr.ah_attr = AHAttr(gr=GlobalRoute(dgid=GID(gid), sgid_index=0), is_global=1, port_num=1)
        self.qp.to_rts(attr)
        return {}

    def request(self, opcode, address, rkey, length):
        wr = SendWR(opcode=opcode, num_sge=1, sg=[SGE(self.mr.buf, length, self.mr.lkey)], wr_id=1,
                    send_flags=e.IBV_SEND_SIGNALED)
        wr.set_wr_rdma(rkey, address)
        self.qp.post_send(wr)
        while True:
            count, wcs = self.cq.poll()
            if count:
                return {"status": int(wcs[0].status), "vendor": int(wcs[0].vendor_err)}

    def write(self, **what):
        return self.request(e.IBV_WR_RDMA_WRITE, **what)

    def read(self, **what):
        return self.request(e.IBV_WR_RDMA_READ, **what)

    def memory(self, fill=None):
        if fill is not None:
            self.mr.write(bytes.fromhex(fill), len(fill) // 2)
        return {"bytes": self.mr.read(SIZE, 0).hex()}


def main():
    side = Side()
    print(json.dumps(side.again()), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        print(json.dumps(getattr(side, command.pop("do"))(**command)), flush=True)


if __name__ == "__main__":
    main()
