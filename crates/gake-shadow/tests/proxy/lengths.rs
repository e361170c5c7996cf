//! Lengths of HTTP/2 requests at HTTP/1.1 backends.

use bytes::Bytes;
use gake_shadow::Category;
use http::Request;
use tokio::runtime::Builder;

use crate::backend::Backend;
use crate::{config, start, stop, until_count};

#[test]
fn leading_zeros_of_an_http2_length_are_removed() {
    let (master, shadow) = (Backend::hello(), Backend::hello());
    let proxy = start(config(&master, &[&shadow]));
    Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        for digits in [18, 19, 20] {
            let stream = tokio::net::TcpStream::connect(proxy.addr()).await.unwrap();
            let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            let post = Request::post(format!("http://{}/", proxy.addr()))
                .header("content-length", format!("{:0digits$}", 5))
                .body(())
                .unwrap();
            let (response, mut body) = requests.send_request(post, false).unwrap();
            let _ = body.send_data(Bytes::from_static(b"hello"), true);
            // The codec accepts up to 19 digits.
            let status = response.await.map(|response| response.status().as_u16()).ok();
            assert_eq!(status, (digits < 20).then_some(200), "{digits}");
        }
    });
    until_count(&proxy, 0, Category::Ok, 2);
    let both = [master.requests(), shadow.requests()].concat();
    assert_eq!(both.len(), 4);
    for seen in both {
        assert_eq!((seen.get("content-length"), seen.get("transfer-encoding")), ("5", ""));
        assert_eq!(seen.text(), "hello");
    }
    stop(proxy);
    assert_eq!((master.leftovers(), shadow.leftovers()), (0, 0));
}
