#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause-Patent
"""A program on Debian's pyverbs: two NICs, SEND, WRITE with immediate and READ between them, and what
verbs promise of errors. Prints `pyverbs: ok`; the group pyverbs of programs_test.py runs it in nicsim.
"""
import errno

from pyverbs import enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsError, PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

SIZE = 10000
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ


class Side:
    """One device with a queue pair and a region."""

    def __init__(self, name):
        self.context = Context(name=name)
        self.pd = PD(self.context)
        self.mr = MR(self.pd, SIZE, ACCESS)
        self.channel = CompChannel(self.context)
        self.cq = CQ(self.context, 16, None, self.channel, 0)
        caps = QPCap(max_send_wr=8, max_recv_wr=8, max_send_sge=1, max_recv_sge=1)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=caps))

    def connect(self, peer):
        route = GlobalRoute(dgid=peer.context.query_gid(1, 0), sgid_index=0)
        attr = QPAttr(path_mtu=e.IBV_MTU_1024, port_num=1)
        attr.rq_psn = attr.sq_psn = 0x123
        attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer = 14, 7, 7, 12
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
        attr.dest_qp_num, attr.qp_access_flags = peer.qp.qp_num, ACCESS
        attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        self.qp.to_rts(attr)

    def sge(self, length=SIZE):
        return [SGE(self.mr.buf, length, self.mr.lkey)]

    def completion(self, opcode):
        while True:
            count, wcs = self.cq.poll()
            if count:
                assert wcs[0].status == e.IBV_WC_SUCCESS, wcs[0]
                assert wcs[0].opcode == opcode, wcs[0]
                return wcs[0]


def refused(call, code):
    try:
        call()
    except (PyverbsError, PyverbsRDMAError) as error:
        assert getattr(error, "error_code", None) == code or f"Errno: {code}" in str(error), error
        return
    raise AssertionError(f"{call} was not refused")


def main():
    names = sorted(device.name.decode() for device in get_device_list())
    assert names == ["roci0", "roci1"], names
    a, b = Side(names[0]), Side(names[1])
    attributes = a.context.query_device()
    assert attributes.max_qp > 0 and attributes.phys_port_cnt == 1, attributes
    assert a.context.query_port(1).link_layer == e.IBV_LINK_LAYER_ETHERNET
    a.connect(b)
    b.connect(a)

    data = bytes(7 * n & 255 for n in range(SIZE))
    a.mr.write(data, SIZE)
    b.cq.req_notify()
    b.qp.post_recv(RecvWR(num_sge=1, sg=b.sge(), wr_id=3))
    a.qp.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=a.sge(), wr_id=1,
                          send_flags=e.IBV_SEND_SIGNALED))
    b.channel.get_cq_event(b.cq)
    b.cq.ack_events(1)
    assert a.completion(e.IBV_WC_SEND).wr_id == 1
    received = b.completion(e.IBV_WC_RECV)
    assert received.wr_id == 3 and received.byte_len == SIZE, received
    assert b.mr.read(SIZE, 0) == data

    a.mr.write(data[::-1], SIZE)
    b.qp.post_recv(RecvWR(num_sge=1, sg=b.sge(1), wr_id=4))
    write = SendWR(opcode=e.IBV_WR_RDMA_WRITE_WITH_IMM, num_sge=1, sg=a.sge(), wr_id=2,
                   imm_data=0x01020304, send_flags=e.IBV_SEND_SIGNALED)
    write.set_wr_rdma(b.mr.rkey, b.mr.buf)
    a.qp.post_send(write)
    a.completion(e.IBV_WC_RDMA_WRITE)
    received = b.completion(e.IBV_WC_RECV_RDMA_WITH_IMM)
    assert received.imm_data == 0x01020304 and received.byte_len == SIZE, received
    assert b.mr.read(SIZE, 0) == data[::-1]

    b.mr.write(data, SIZE)
    read = SendWR(opcode=e.IBV_WR_RDMA_READ, num_sge=1, sg=a.sge(), wr_id=5,
                  send_flags=e.IBV_SEND_SIGNALED)
    read.set_wr_rdma(b.mr.rkey, b.mr.buf)
    a.qp.post_send(read)
    a.completion(e.IBV_WC_RDMA_READ)
    assert a.mr.read(SIZE, 0) == data

    refused(lambda: MR(a.pd, SIZE, e.IBV_ACCESS_REMOTE_WRITE), errno.EINVAL)  # without LOCAL_WRITE
    refused(lambda: a.qp.modify(QPAttr(qp_state=e.IBV_QPS_RTR), e.IBV_QP_STATE), errno.EINVAL)
    refused(lambda: CQ(a.context, attributes.max_cqe + 1, None, None, 0), errno.EINVAL)
    print("pyverbs: ok")


if __name__ == "__main__":
    main()
