//! Connections: how the server sets up those that it accepts.

#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use rustix::process::{self, PidfdFlags, PidfdGetfdFlags};

use crate::helpers::TestApp;

/// The server's end of a connection, which is in this process: found by its ports, and duplicated.
fn accepted(server: SocketAddr, client: SocketAddr) -> TcpStream {
    let port = |address: &str| address.rsplit(':').next().and_then(|port| u16::from_str_radix(port, 16).ok());
    let sockets = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let inode = sockets.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ours = port(fields[1]) == Some(server.port()) && port(fields[2]) == Some(client.port());
        ours.then(|| fields[9].to_owned())
    });
    let name = format!("socket:[{}]", inode.expect("the connection is there"));
    let descriptor = std::fs::read_dir("/proc/self/fd").unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        let ours = std::fs::read_link(&path).is_ok_and(|target| target.to_string_lossy() == name);
        ours.then(|| path.file_name().unwrap().to_string_lossy().parse().unwrap())
    });
    let this = process::pidfd_open(process::getpid(), PidfdFlags::empty()).unwrap();
    process::pidfd_getfd(this, descriptor.expect("the server has it"), PidfdGetfdFlags::empty()).unwrap().into()
}

#[tokio::test]
async fn an_answer_in_parts_does_not_wait_for_acknowledgements() {
    let app = TestApp::new().await;
    let addr = app.addr;
    let exchange = move || {
        let mut client = TcpStream::connect(addr).unwrap();
        client.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        // It has accepted what it answers.
        client.read_exact(&mut [0; 8]).unwrap();
        accepted(addr, client.local_addr().unwrap()).nodelay().unwrap()
    };
    assert!(tokio::task::spawn_blocking(exchange).await.unwrap());
}
